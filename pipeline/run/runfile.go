package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/plugin"
)

// File is one experiment and how it is run. Every field with a help text is also a flag of `trajgen run`.
type File struct {
	Name string `yaml:"name" group:"The run" help:"name of the run; the default is made of dataset and time"`
	Out  string `yaml:"out" help:"run directory (default runs/NAME)"`

	Dataset     Paths  `yaml:"dataset" group:"The dataset, and which of its tasks are played" help:"dataset: bundled, a file (.jsonl, .json, .csv, .tsv, .parquet, .arrow or .yaml; text also packed as .gz, .zst or .bz2), a pattern such as 'data/*.jsonl.gz', or a directory; of several, in their order"`
	Map         string `yaml:"map" help:"mapping file that builds the task fields from foreign rows, or the name of one that comes along: humaneval, gsm8k"`
	Shape       string `yaml:"shape,omitempty" help:"shape of the dataset's rows: swebench, verl, skyrl, hermes (ShareGPT conversations, too), chat (messages with the assistant's turns) or task (our own fields); without it, their columns show all but chat"`
	MaxTasks    int    `yaml:"max_tasks" help:"play N tasks at most: the first of those that the other choices leave"`
	SkipBadRows bool   `yaml:"skip_bad_rows" help:"report broken rows and play the rest"`
	Shuffle     bool   `yaml:"shuffle" help:"play the tasks in an order drawn from the seed; what does not fit into 64 MiB lies in the run directory meanwhile"`
	Samples     int    `yaml:"samples" help:"plays of each task"`
	Seed        uint64 `yaml:"seed" help:"seed of everything that is drawn"`

	Subset     string             `yaml:"subset,omitempty" help:"subset of a dataset folder (a config of its README.md, or a directory of it), where it has several"`
	Split      string             `yaml:"split,omitempty" help:"split of a dataset folder, such as train or test, where it has several"`
	Where      string             `yaml:"where,omitempty" help:"play the tasks for which a condition holds, such as 'difficulty == \"hard\" and \"math\" in tags and level > 3'; it sees id, row, prompt, system, tags, difficulty, toolsets, files and whatever else a row has; a name that no row has is refused, metadata?.NAME asks for it all the same"`
	Parts      map[string]float64 `yaml:"parts,omitempty" help:"divide the tasks by a hash of their ids, such as --parts train=0.9 --parts test=0.1: a task stays in its part when others are added, and with any seed"`
	UsePart    string             `yaml:"use_part,omitempty" help:"the one of the parts that is played"`
	Stratify   string             `yaml:"stratify,omitempty" help:"play a sample in which each value of a field, such as difficulty, has the share that it has in the dataset; --max-tasks says how large, or --per-stratum"`
	PerStratum int                `yaml:"per_stratum,omitempty" help:"with stratify: so many tasks of each value"`
	Slice      string             `yaml:"slice,omitempty" help:"play the tasks at some positions, START:END or START:END:STEP, from 0 and without END, such as 100:200 or ::10"`

	Distribution     string   `yaml:"distribution" group:"Toolsets and tools" help:"draw each episode's toolsets from a distribution: a name (trajgen distributions list) or a YAML file"`
	Toolsets         []string `yaml:"toolsets" help:"give every episode these toolsets, without a draw (default: all; none for no tools)"`
	DisabledToolsets []string `yaml:"disabled_toolsets" help:"toolsets or tools that no episode gets"`
	SchemaQuirks     []string `yaml:"schema_quirks,omitempty" help:"what the model's server does not take in tool schemas: format, keywords, nullable, pattern, refs, slash_enums, union_types, unions; or none (default: what models of its name are known for)"`

	Model       string   `yaml:"model" group:"The model, and how it is asked" help:"model name, as the server knows it"`
	BaseURL     string   `yaml:"base_url" help:"OpenAI-compatible endpoint, with /v1, or unix:///path/of/a.socket (default https://api.openai.com/v1)"`
	Endpoints   []string `yaml:"endpoints,omitempty" help:"several OpenAI-compatible endpoints that have the model, instead of base_url: an episode stays at one of them while that works"`
	APIKeyEnv   string   `yaml:"api_key_env" help:"environment variable that holds the endpoint's key"`
	Temperature *float64 `yaml:"temperature,omitempty" help:"sampling temperature (default: the server's)"`
	TopP        *float64 `yaml:"top_p,omitempty" help:"nucleus sampling (default: the server's)"`
	MaxTokens   int      `yaml:"max_tokens" help:"most tokens of one reply (default: the server's)"`

	MaxTokensField    string         `yaml:"max_tokens_field,omitempty" help:"name under which max_tokens is sent: max_tokens, max_completion_tokens, or auto (default), which takes the other one when the server refuses the first"`
	ReasoningEffort   string         `yaml:"reasoning_effort,omitempty" help:"how hard a reasoning model thinks, such as low, medium or high (default: the server's)"`
	SendReasoning     string         `yaml:"send_reasoning,omitempty" help:"send the model its earlier reasoning back: true, false, or auto (default), which gives OpenRouter the reasoning_details that came from it"`
	SendSeed          *bool          `yaml:"send_seed,omitempty" help:"send a seed of its own with each request (default true), unless the server refuses it"`
	ToolChoice        string         `yaml:"tool_choice,omitempty" help:"what the model must do where it has tools: auto, none, required, required_first (in the first turn alone), or the name of a tool, wherever an episode has it (default: nothing is said)"`
	ParallelToolCalls *bool          `yaml:"parallel_tool_calls,omitempty" help:"let a turn have several calls (default: the server's)"`
	Provider          map[string]any `yaml:"provider,omitempty"` // OpenRouter's routing, sent as it is
	Sweep             SweepFile      `yaml:"sweep,omitempty"`    // settings that differ between samples

	Stream     bool              `yaml:"stream" help:"stream replies, so that a stalled one is noticed early"`
	ToolFormat string            `yaml:"tool_format,omitempty" help:"format of tool calls that the server leaves in the text of a reply, such as hermes or kimi_k2; native reads none and takes every text for an answer (default: what models of its name write, or any that is known)"`
	TokenIDs   string            `yaml:"token_ids,omitempty" help:"ask the server for the ids and log probabilities of all tokens and keep them: auto, vllm, sglang or llamacpp (default: no)"`
	ExtraBody  map[string]any    `yaml:"extra_body,omitempty"` // merged into each request
	Headers    map[string]string `yaml:"headers,omitempty"`    // sent with each request, and written to run.json
	HeaderEnv  map[string]string `yaml:"header_env,omitempty"` // header → environment variable that holds its secret value

	UserModel     string `yaml:"user_model" group:"Models beside it" help:"model that answers the agent's questions where a task has {\"user\": {\"model\": true}}"`
	UserBaseURL   string `yaml:"user_base_url" help:"endpoint of the user model (default: base_url)"`
	UserAPIKeyEnv string `yaml:"user_api_key_env" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`

	SearchSameTask bool `yaml:"session_search_same_task" group:"Toolsets and tools" help:"let session_search find other samples of the same task, too, and so their answers"`

	RequestTimeout time.Duration `yaml:"request_timeout" group:"When the model does not answer" help:"most time of one request"`
	MaxInFlight    int           `yaml:"max_in_flight,omitempty" help:"requests that an endpoint is sent at once, at most (default: workers); fewer while it refuses them"`
	MinInFlight    int           `yaml:"min_in_flight,omitempty" help:"requests that an endpoint is sent at once even while it refuses them (default 1)"`
	IdleTimeout    time.Duration `yaml:"idle_timeout,omitempty" help:"most time in which a stream may be silent, before its first token and within (default 2m)"`
	RequestRetries int           `yaml:"request_retries" help:"retries of a request that failed in a way that may pass; an outage takes none of them"`

	EpisodeRequestRetries int           `yaml:"episode_request_retries" help:"retries of all requests of an episode; 0 is no bound"`
	RetryShare            float64       `yaml:"retry_share" help:"share of requests that retries may be once a hundred were made, or two for each worker; more of them wait. 0 is no bound"`
	OutageLimit           time.Duration `yaml:"outage_limit" help:"how long the run pauses while the endpoint does not answer, before it stops; 0 is for ever"`
	Fallbacks             []fallback    `yaml:"fallbacks,omitempty"` // models that answer when the one before cannot be had

	Policy string  `yaml:"policy" group:"Without a model, and tapes" help:"play against the embedded scripted server: oracle, noop, noisy or replay"`
	Skill  float64 `yaml:"skill" help:"share of episodes that the noisy policy solves"`
	Replay string  `yaml:"replay" help:"tape (file, or directory that has one) that answers instead of the model; with policy replay the run directory whose messages are repeated"`
	Record string  `yaml:"record,omitempty" help:"file, or existing directory, for the tape of all exchanges with models; --replay plays the run again from it"`

	SystemPrompt string `yaml:"system_prompt" group:"Prompts of the run" help:"file with the system prompt of tasks that bring none"`

	EphemeralSystemPrompt string `yaml:"ephemeral_system_prompt,omitempty" help:"file with text that every system message ends with; flagged in the row, and left out by trajgen export --without-harness"`
	Prefill               string `yaml:"prefill,omitempty" help:"file with messages that are said before every task's prompt, such as examples: a JSON or YAML list; flagged and left out likewise"`

	MaxTurns       int           `yaml:"max_turns" group:"An episode" help:"model calls of an episode, at most"`
	EpisodeTokens  int           `yaml:"episode_tokens" help:"prompt and completion tokens of an episode, at most (default: no limit)"`
	EpisodeTimeout time.Duration `yaml:"episode_timeout" help:"wall time of an episode's model and tool calls, at most"`

	Guardrails      string         `yaml:"guardrails" group:"Toolsets and tools" help:"calls that lead nowhere: off, record (default: noted in the trace), tell (the model, too) or stop (the episode, in the end)"`
	TurnResultLimit int            `yaml:"turn_result_limit" help:"bytes of all tool results of one turn; the longest are stored in the sandbox beyond it (default 200000)"`
	ResultLimits    map[string]int `yaml:"result_limits,omitempty"` // tool → bytes of one result, beyond which it is stored in the sandbox

	Workers           int               `yaml:"workers" group:"Workers, retries and the end" help:"episodes in play at once"`
	EpisodeRetries    int               `yaml:"episode_retries" help:"plays again of an episode that ended in a model, tool or sandbox error"`
	MaxEpisodeRetries int               `yaml:"max_episode_retries,omitempty" help:"plays again of all episodes of the run together, at most; beyond it an error outcome stands, for --retry-errors later (default: no limit)"`
	EpisodeRetryShare float64           `yaml:"episode_retry_share,omitempty" help:"the same as a share of the run's episodes, such as 0.1 (default: no limit)"`
	DurableTurns      bool              `yaml:"durable_turns,omitempty" help:"record each turn as it happens, so that after a crash, a cancelled run or a reached budget the episodes in play go on where they were: replies come from the record, tool calls are run again in a fresh sandbox and their results compared"`
	RetryErrors       bool              `yaml:"retry_errors" help:"with --resume: play again what ended in an error outcome"`
	MaxErrorsInRow    int               `yaml:"max_errors_in_row" help:"stop the run when episodes of so many tasks in a row end in the same error outcome; 0 never does"`
	MaxErrorShare     float64           `yaml:"max_error_share" help:"share of error outcomes above which the exit code is 3"`
	JournalSegment    size              `yaml:"journal_segment,omitempty" help:"size at which the journal begins another file (default 64M)"`
	Sandbox           string            `yaml:"sandbox" group:"Sandboxes" help:"sandbox backend: native, local (no isolation, for trusted work), or another that trajgen doctor lists"`
	SandboxSettings   map[string]string `yaml:"sandbox_settings,omitempty" help:"what the backend wants to know, as NAME=VALUE; trajgen doctor lists the names"`
	Isolation         string            `yaml:"isolation" help:"least isolation level that the sandbox must reach: strong, user, landlock or none (default: landlock with native)"`
	ReadySandboxes    int               `yaml:"ready_sandboxes" help:"sandboxes that are kept ready ahead of demand, of each kind"`
	Image             string            `yaml:"image" help:"image of tasks that name none (default: the host's toolchain)"`
	ImageDir          string            `yaml:"image_dir" help:"where images are unpacked to (default: this user's store)"`
	Network           string            `yaml:"network" help:"network of tasks that name none: none, loopback, allowlist or full"`
	Allow             []string          `yaml:"allow,omitempty" help:"targets of network allowlist: names (example.org, *.example.org), addresses or CIDR ranges, each with or without :PORT (default: 80 and 443)"`
	Memory            size              `yaml:"memory" help:"memory of one sandbox"`
	Processes         int               `yaml:"processes" help:"processes of one sandbox"`
	Disk              size              `yaml:"disk" help:"bytes that one sandbox can write"`
	Inodes            int               `yaml:"inodes" help:"files that one sandbox can make (default: one for each 2K of disk)"`
	CPUs              float64           `yaml:"cpus" help:"processors' worth of time of one sandbox, such as 0.5 (default: no limit)"`

	resumed bool   // an earlier run goes on
	Scratch string // where tasks are laid aside that are played in another order

	NoUser bool // a proof of the tasks asks no model, not even one that plays a user

	CommandPolicy     string   `yaml:"command_policy" group:"Commands that could do harm" help:"shell commands that could do harm: enforce (refuse them; the default with local and ssh), record (run them, with the verdict in the trace; the default elsewhere), approve (ask the approver) or off"`
	Approver          []string `yaml:"approver,omitempty" help:"who decides with command_policy approve: prompt, model, or a command with its arguments"`
	ApproverModel     string   `yaml:"approver_model" help:"model that decides with approver model"`
	ApproverBaseURL   string   `yaml:"approver_base_url" help:"endpoint of the approver's model (default: base_url)"`
	ApproverAPIKeyEnv string   `yaml:"approver_api_key_env" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
	AllowCommands     string   `yaml:"allow_commands" help:"file of commands that were approved for good; the approver adds to it"`

	CustomToolsets map[string]registry.ToolsetDef `yaml:"custom_toolsets,omitempty"`
	ToolSearch     registry.Bridge                `yaml:"tool_search,omitempty"` // shows the tools beyond the core ones through a search
	Plugins        []plugin.Config                `yaml:"plugins,omitempty"`
	Prices         episode.Prices                 `yaml:"prices,omitempty"` // by model, USD per million tokens

	PricesFile        string  `yaml:"prices_file,omitempty" group:"Prices and budgets" help:"YAML file with prices: date, and models: {NAME: {input, output, cached_input}} in USD per million tokens"`
	PricesDate        string  `yaml:"prices_date,omitempty" help:"when the prices of the run file were looked up, YYYY-MM-DD"`
	AllowUnknownPrice bool    `yaml:"allow_unknown_price,omitempty" help:"start with a budget in USD although a model has no price; what it costs is in no budget"`
	BudgetUSD         float64 `yaml:"budget_usd,omitempty" help:"most that the run may spend on models, resumed parts included; it stops cleanly and can be resumed with more (default: no limit)"`
	BudgetTokens      int     `yaml:"budget_tokens,omitempty" help:"prompt and completion tokens of the run, at most, likewise (default: no limit)"`
	EpisodeUSD        float64 `yaml:"episode_usd,omitempty" help:"most that an episode's turns may cost (default: no limit)"`

	ContextWindow    int     `yaml:"context_window,omitempty" group:"Long conversations" help:"tokens that a prompt and its reply may have together (default: what the server says)"`
	Compaction       string  `yaml:"compaction,omitempty" help:"what is done when a conversation nears the window's end: stop (the episode ends at its limit; default), drop (the oldest tool results) or summarize"`
	CompactAt        float64 `yaml:"compact_at,omitempty" help:"share of the window at which a conversation is shortened (default 0.8)"`
	CompactTo        float64 `yaml:"compact_to,omitempty" help:"share of the window to which it is shortened, about (default 0.5)"`
	SummaryModel     string  `yaml:"summary_model,omitempty" help:"model that writes the summaries of compaction summarize (default: the agent's own)"`
	SummaryBaseURL   string  `yaml:"summary_base_url,omitempty" help:"endpoint of the summary model (default: base_url)"`
	SummaryAPIKeyEnv string  `yaml:"summary_api_key_env,omitempty" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
}

// Default is a run file in which nothing is said.
func Default() File {
	return File{
		Samples: 1, Skill: 0.7,
		RequestTimeout: 10 * time.Minute, RequestRetries: 5,
		EpisodeRequestRetries: 50, RetryShare: 0.2, OutageLimit: 30 * time.Minute,
		MaxTurns: rollout.DefaultTurns, EpisodeTimeout: rollout.DefaultTime,
		Workers: 8, EpisodeRetries: 1, MaxErrorsInRow: 20,
		Sandbox: "native", ReadySandboxes: 2, Network: "loopback", Memory: 1 << 30, Processes: 256, Disk: 512 << 20,
	}
}

// MarshalJSON writes the keys of a run file.
func (f File) MarshalJSON() ([]byte, error) {
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
func (f *File) UnmarshalJSON(data []byte) error {
	return yaml.Unmarshal(data, (*plainRunFile)(f))
}

// plainRunFile is a File without methods.
type plainRunFile File

// Validate returns everything wrong at once that can be seen without opening anything.
func (f *File) Validate() error {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(f.Dataset) == 0 {
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
	if err := f.Choice().Validate(f.MaxTasks); err != nil {
		problems = append(problems, err)
	}
	if err := f.checkBudget(); err != nil {
		problems = append(problems, err)
	}
	if err := f.checkContext(); err != nil {
		problems = append(problems, err)
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
	if err := model.CheckToolFormat(f.ToolFormat); err != nil {
		problems = append(problems, err)
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
	if err := f.Quirks().Validate(); err != nil {
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
	if err := f.checkPatience(); err != nil {
		problems = append(problems, err)
	}
	if err := f.checkUser(); err != nil {
		problems = append(problems, err)
	}
	if err := f.CheckSweep(); err != nil {
		problems = append(problems, err)
	}
	if len(f.Endpoints) > 0 && (f.BaseURL != "" || f.Policy != "") {
		bad("endpoints are given together with base_url or policy, which say where the model is, too; leave one out")
	}
	if f.MinInFlight < 0 || f.MaxInFlight < 0 || f.MaxInFlight > 0 && f.MinInFlight > f.MaxInFlight {
		bad("min_in_flight is %d and max_in_flight %d; 0 or more, and the least first", f.MinInFlight, f.MaxInFlight)
	}
	if f.Policy != "" && f.BaseURL != "" {
		bad("both policy and base_url are given: a policy plays against the embedded server; leave one out")
	}
	if f.Policy == "" && f.Model == "" && len(f.Sweep.Model) == 0 {
		bad("no model: give --model NAME (and --base-url URL), or --policy oracle to play without one")
	}
	if f.Policy == "replay" && f.Replay == "" {
		bad("the replay policy needs --replay RUN_DIRECTORY")
	}
	if err := f.checkTape(); err != nil {
		problems = append(problems, err)
	}
	if !(f.Skill >= 0 && f.Skill <= 1) {
		bad("skill is %v; from 0 to 1", f.Skill)
	}
	sortErrors(problems)
	return errors.Join(problems...)
}

// baseURL is where the model is, or the first of the endpoints that have it.
func (f *File) baseURL() string {
	if len(f.Endpoints) > 0 {
		return f.Endpoints[0]
	}
	return cmp.Or(f.BaseURL, DefaultBaseURL)
}

// DefaultBaseURL is where a model is of which nobody says where.
const DefaultBaseURL = "https://api.openai.com/v1"

// secretHeader finds the names of headers that must not be written down.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password`)

// fixedToolsets is what an episode gets when neither its task nor a distribution says.
func (f *File) fixedToolsets() []string {
	if len(f.Toolsets) > 0 {
		return f.Toolsets
	}
	return []string{"all"}
}

func sortErrors(errs []error) {
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}

// tokenServer is whom the model's client asks for token ids. YAML's true and false are what people write first.
func (f *File) tokenServer() string {
	switch f.TokenIDs {
	case "true":
		return model.TokenIDsAuto
	case "false":
		return ""
	}
	return f.TokenIDs
}
