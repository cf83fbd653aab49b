package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"trajgen/outputs"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/plugin"
)

// runFile is one experiment and how it is run. Every field with a help text is also a flag of `trajgen run`.
type runFile struct {
	Name string `yaml:"name" help:"name of the run; the default is made of dataset and time"`
	Out  string `yaml:"out" help:"run directory (default runs/NAME)"`

	Dataset     string `yaml:"dataset" help:"dataset: bundled, or a path to .jsonl, .jsonl.gz, .jsonl.zst or .parquet"`
	Map         string `yaml:"map" help:"mapping file that builds the task fields from foreign rows, or the name of one that comes along: humaneval, gsm8k"`
	MaxTasks    int    `yaml:"max_tasks" help:"play the first N tasks alone"`
	SkipBadRows bool   `yaml:"skip_bad_rows" help:"report broken rows and play the rest"`
	Shuffle     bool   `yaml:"shuffle" help:"play the tasks in an order drawn from the seed; holds the dataset in memory"`
	Samples     int    `yaml:"samples" help:"plays of each task"`
	Seed        uint64 `yaml:"seed" help:"seed of everything that is drawn"`

	Distribution     string   `yaml:"distribution" help:"draw each episode's toolsets from a distribution: a name (trajgen distributions list) or a YAML file"`
	Toolsets         []string `yaml:"toolsets" help:"give every episode these toolsets, without a draw (default: all)"`
	DisabledToolsets []string `yaml:"disabled_toolsets" help:"toolsets or tools that no episode gets"`
	SchemaQuirks     []string `yaml:"schema_quirks,omitempty" help:"what the model's server does not take in tool schemas: format, keywords, nullable, pattern, refs, slash_enums, union_types, unions; or none (default: what models of its name are known for)"`

	Model       string            `yaml:"model" help:"model name, as the server knows it"`
	BaseURL     string            `yaml:"base_url" help:"OpenAI-compatible endpoint, with /v1 (default https://api.openai.com/v1)"`
	APIKeyEnv   string            `yaml:"api_key_env" help:"environment variable that holds the endpoint's key"`
	Temperature *float64          `yaml:"temperature,omitempty" help:"sampling temperature (default: the server's)"`
	TopP        *float64          `yaml:"top_p,omitempty" help:"nucleus sampling (default: the server's)"`
	MaxTokens   int               `yaml:"max_tokens" help:"most tokens of one reply (default: the server's)"`
	Stream      bool              `yaml:"stream" help:"stream replies, so that a stalled one is noticed early"`
	ExtraBody   map[string]any    `yaml:"extra_body,omitempty"` // merged into each request
	Headers     map[string]string `yaml:"headers,omitempty"`    // sent with each request, and written to run.json
	HeaderEnv   map[string]string `yaml:"header_env,omitempty"` // header → environment variable that holds its secret value

	UserModel     string `yaml:"user_model" help:"model that answers the agent's questions where a task has {\"user\": {\"model\": true}}"`
	UserBaseURL   string `yaml:"user_base_url" help:"endpoint of the user model (default: base_url)"`
	UserAPIKeyEnv string `yaml:"user_api_key_env" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`

	SearchSameTask bool `yaml:"session_search_same_task" help:"let session_search find other samples of the same task, too, and so their answers"`

	RequestTimeout time.Duration `yaml:"request_timeout" help:"most time of one request"`
	RequestRetries int           `yaml:"request_retries" help:"retries of a request that failed in a way that may pass"`

	Policy string  `yaml:"policy" help:"play against the embedded scripted server: oracle, noop, noisy or replay"`
	Skill  float64 `yaml:"skill" help:"share of episodes that the noisy policy solves"`
	Replay string  `yaml:"replay" help:"run directory whose journal the replay policy plays"`

	SystemPrompt   string        `yaml:"system_prompt" help:"file with the system prompt of tasks that bring none"`
	MaxTurns       int           `yaml:"max_turns" help:"model calls of an episode, at most"`
	EpisodeTokens  int           `yaml:"episode_tokens" help:"prompt and completion tokens of an episode, at most (default: no limit)"`
	EpisodeTimeout time.Duration `yaml:"episode_timeout" help:"wall time of an episode's model and tool calls, at most"`

	Guardrails      string         `yaml:"guardrails" help:"calls that lead nowhere: off, record (default: noted in the trace), tell (the model, too) or stop (the episode, in the end)"`
	TurnResultLimit int            `yaml:"turn_result_limit" help:"bytes of all tool results of one turn; the longest are stored in the sandbox beyond it (default 200000)"`
	ResultLimits    map[string]int `yaml:"result_limits,omitempty"` // tool → bytes of one result, beyond which it is stored in the sandbox

	Workers         int               `yaml:"workers" help:"episodes in play at once"`
	EpisodeRetries  int               `yaml:"episode_retries" help:"plays again of an episode that ended in a model, tool or sandbox error"`
	RetryErrors     bool              `yaml:"retry_errors" help:"with --resume: play again what ended in an error outcome"`
	MaxErrorsInRow  int               `yaml:"max_errors_in_row" help:"stop the run when so many episodes in a row end in the same error outcome; 0 never does"`
	MaxErrorShare   float64           `yaml:"max_error_share" help:"share of error outcomes above which the exit code is 3"`
	Sandbox         string            `yaml:"sandbox" help:"sandbox backend: native, local (no isolation, for trusted work), or another that trajgen doctor lists"`
	SandboxSettings map[string]string `yaml:"sandbox_settings,omitempty" help:"what the backend wants to know, as NAME=VALUE; trajgen doctor lists the names"`
	Isolation       string            `yaml:"isolation" help:"least isolation level that the sandbox must reach: strong, user, landlock or none (default: landlock with native)"`
	ReadySandboxes  int               `yaml:"ready_sandboxes" help:"sandboxes that are kept ready ahead of demand, of each kind"`
	Image           string            `yaml:"image" help:"image of tasks that name none (default: the host's toolchain)"`
	ImageDir        string            `yaml:"image_dir" help:"where images are unpacked to (default: this user's store)"`
	Network         string            `yaml:"network" help:"network of tasks that name none: none, loopback, allowlist or full"`
	Allow           []string          `yaml:"allow,omitempty" help:"targets of network allowlist: names (example.org, *.example.org), addresses or CIDR ranges, each with or without :PORT (default: 80 and 443)"`
	Memory          size              `yaml:"memory" help:"memory of one sandbox"`
	Processes       int               `yaml:"processes" help:"processes of one sandbox"`
	Disk            size              `yaml:"disk" help:"bytes that one sandbox can write"`
	Inodes          int               `yaml:"inodes" help:"files that one sandbox can make (default: one for each 2K of disk)"`
	CPUs            float64           `yaml:"cpus" help:"processors' worth of time of one sandbox, such as 0.5 (default: no limit)"`

	noUser bool // a proof of the tasks asks no model, not even one that plays a user

	CommandPolicy     string   `yaml:"command_policy" help:"shell commands that could do harm: enforce (refuse them; the default with local and ssh), record (run them, with the verdict in the trace; the default elsewhere), approve (ask the approver) or off"`
	Approver          []string `yaml:"approver,omitempty" help:"who decides with command_policy approve: prompt, model, or a command with its arguments"`
	ApproverModel     string   `yaml:"approver_model" help:"model that decides with approver model"`
	ApproverBaseURL   string   `yaml:"approver_base_url" help:"endpoint of the approver's model (default: base_url)"`
	ApproverAPIKeyEnv string   `yaml:"approver_api_key_env" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
	AllowCommands     string   `yaml:"allow_commands" help:"file of commands that were approved for good; the approver adds to it"`

	CustomToolsets map[string]registry.ToolsetDef `yaml:"custom_toolsets,omitempty"`
	ToolSearch     registry.Bridge                `yaml:"tool_search,omitempty"` // shows the tools beyond the core ones through a search
	Plugins        []plugin.Config                `yaml:"plugins,omitempty"`
	Prices         map[string]outputs.Price       `yaml:"prices,omitempty"` // by model, USD per million tokens
}

func defaultRunFile() runFile {
	return runFile{
		Samples: 1, Skill: 0.7,
		RequestTimeout: 10 * time.Minute, RequestRetries: 5,
		MaxTurns: rollout.DefaultTurns, EpisodeTimeout: rollout.DefaultTime,
		Workers: 8, EpisodeRetries: 1, MaxErrorsInRow: 20,
		Sandbox: "native", ReadySandboxes: 2, Network: "loopback", Memory: 1 << 30, Processes: 256, Disk: 512 << 20,
	}
}

// decodeRunFile reads a run file over the defaults, strictly.
func decodeRunFile(path string, into *runFile) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read run file: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("run file %s: %w", path, yamlError(err))
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("run file %s: it holds more than one document; a run file is one", path)
	}
	return nil
}

// yamlError puts yaml's list of problems on one line and speaks of keys rather than Go fields.
func yamlError(err error) error {
	var typed *yaml.TypeError
	if !errors.As(err, &typed) {
		return err
	}
	problems := strings.Join(typed.Errors, "; ")
	problems = strings.ReplaceAll(problems, " not found in type main.runFile", " is not a key of a run file (keys are those of trajgen run --help, with _ for -)")
	problems = strings.ReplaceAll(problems, " not found in type plugin.Config", " is not a key of a plugin (have name, command, files, where, toolset, override, env, env_from, timeout)")
	problems = strings.ReplaceAll(problems, " not found in type registry.Bridge", " is not a key of tool_search (have enabled, threshold_pct, context_window, search_default_limit, max_search_limit)")
	problems = strings.ReplaceAll(problems, "field ", "")
	return errors.New(problems)
}

// MarshalJSON writes the keys of a run file.
func (f runFile) MarshalJSON() ([]byte, error) {
	text, err := yaml.Marshal(plainRunFile(f))
	if err != nil {
		return nil, err
	}
	var keys map[string]any
	if err := yaml.Unmarshal(text, &keys); err != nil {
		return nil, err
	}
	return json.Marshal(keys)
}

// UnmarshalJSON reads what MarshalJSON writes: JSON is YAML.
func (f *runFile) UnmarshalJSON(data []byte) error {
	return yaml.Unmarshal(data, (*plainRunFile)(f))
}

// plainRunFile is a runFile without methods.
type plainRunFile runFile

// validate returns everything wrong at once that can be seen without opening anything.
func (f *runFile) validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if f.Dataset == "" {
		bad("no dataset: give --dataset PATH, or --dataset bundled for the tasks that come along")
	}
	if f.Samples < 1 {
		bad("samples is %d; at least 1", f.Samples)
	}
	if f.Workers < 1 {
		bad("workers is %d; at least 1", f.Workers)
	}
	if f.MaxTurns < 1 {
		bad("max_turns is %d; at least 1", f.MaxTurns)
	}
	if f.EpisodeTimeout <= 0 || f.RequestTimeout <= 0 {
		bad("episode_timeout and request_timeout must be over 0, have %s and %s", f.EpisodeTimeout, f.RequestTimeout)
	}
	for name, value := range map[string]int{"max_tasks": f.MaxTasks, "max_tokens": f.MaxTokens, "episode_tokens": f.EpisodeTokens,
		"request_retries": f.RequestRetries, "episode_retries": f.EpisodeRetries, "max_errors_in_row": f.MaxErrorsInRow, "processes": f.Processes, "inodes": f.Inodes, "turn_result_limit": f.TurnResultLimit, "ready_sandboxes": f.ReadySandboxes} {
		if value < 0 {
			bad("%s is %d; not below 0", name, value)
		}
	}
	for name, value := range map[string]size{"memory": f.Memory, "disk": f.Disk} {
		if value < 0 {
			bad("%s is %d; not below 0", name, int64(value))
		}
	}
	for _, model := range slices.Sorted(maps.Keys(f.Prices)) {
		if p := f.Prices[model]; !(p.Input >= 0 && p.Output >= 0 && p.CachedInput >= 0) {
			bad("prices of %s: not below 0", model)
		}
	}
	if !(f.CPUs >= 0) {
		bad("cpus is %v; not below 0", f.CPUs)
	}
	if f.Inodes > 0 && f.Inodes < 256 {
		bad("inodes is %d; a sandbox needs at least 256", f.Inodes)
	}
	if f.Isolation != "" {
		if _, err := sandbox.ParseLevel(f.Isolation); err != nil {
			problems = append(problems, err)
		}
	}
	if err := rollout.CheckGuard(f.Guardrails); err != nil {
		problems = append(problems, err)
	}
	for _, name := range slices.Sorted(maps.Keys(f.ResultLimits)) {
		if limit := f.ResultLimits[name]; limit < 1 {
			bad("result_limits of %s is %d; over 0", name, limit)
		}
	}
	if err := plugin.Validate(f.Plugins); err != nil {
		problems = append(problems, err)
	}
	if err := f.quirks().Validate(); err != nil {
		problems = append(problems, err)
	}
	if err := f.ToolSearch.Validate(); err != nil {
		problems = append(problems, err)
	}
	if err := sandbox.CheckAllow(f.Allow); err != nil {
		problems = append(problems, err)
	}
	if f.Network == string(sandbox.NetworkAllowlist) && len(f.Allow) == 0 {
		bad("network allowlist allows nothing: give --allow, such as --allow example.org")
	}
	if strings.ContainsAny(f.Name, `/\\`) || f.Name == ".." {
		bad("name %q is a single name, without slashes; --out takes a path", f.Name)
	}
	if f.Memory > 0 && f.Memory < 16<<20 || f.Disk > 0 && f.Disk < 1<<20 || f.Processes > 0 && f.Processes < 8 {
		bad("a sandbox needs at least 16M of memory, 1M of disk and 8 processes, have %s, %s and %d", f.Memory, f.Disk, f.Processes)
	}
	for name := range f.Headers {
		if secretHeader.MatchString(name) {
			bad("header %q usually holds a secret, and headers are written to run.json: put it under header_env: {%s: NAME_OF_ENVIRONMENT_VARIABLE}", name, name)
		}
	}
	if !(f.MaxErrorShare >= 0 && f.MaxErrorShare <= 1) {
		bad("max_error_share is %v; from 0 to 1", f.MaxErrorShare)
	}
	if f.Distribution != "" && len(f.Toolsets) > 0 {
		bad("both toolsets and distribution are given: toolsets are fixed, a distribution draws them; leave one out")
	}
	if err := f.checkCommandPolicy(); err != nil {
		problems = append(problems, err)
	}
	if err := f.checkUser(); err != nil {
		problems = append(problems, err)
	}
	if f.Policy != "" && f.BaseURL != "" {
		bad("both policy and base_url are given: a policy plays against the embedded server; leave one out")
	}
	if f.Policy == "" && f.Model == "" {
		bad("no model: give --model NAME (and --base-url URL), or --policy oracle to play without one")
	}
	if f.Policy == "replay" && f.Replay == "" {
		bad("the replay policy needs --replay RUN_DIRECTORY")
	}
	if !(f.Skill >= 0 && f.Skill <= 1) {
		bad("skill is %v; from 0 to 1", f.Skill)
	}
	sortErrors(problems)
	return errors.Join(problems...)
}

// secretHeader finds the names of headers that must not be written down.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password`)

// fixedToolsets is what an episode gets when neither its task nor a distribution says.
func (f *runFile) fixedToolsets() []string {
	if len(f.Toolsets) > 0 {
		return f.Toolsets
	}
	return []string{"all"}
}

func sortErrors(errs []error) {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}
