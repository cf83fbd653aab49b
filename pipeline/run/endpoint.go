package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"regexp"
	"slices"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// Model is the model that plays the agent, and how it is asked.
type Model struct {
	Name              string            `yaml:"name" flag:"model" experiment:"always" help:"model name, as the server knows it"`
	BaseURL           string            `yaml:"base_url" experiment:"no" help:"OpenAI-compatible endpoint, with /v1, or unix:///path/of/a.socket (default https://api.openai.com/v1)"`
	Endpoints         []string          `yaml:"endpoints,omitempty" experiment:"no" help:"several OpenAI-compatible endpoints that have the model, instead of base_url: an episode stays at one of them while that works"`
	APIKeyEnv         string            `yaml:"api_key_env" experiment:"no" help:"environment variable that holds the endpoint's key"`
	Temperature       *float64          `yaml:"temperature,omitempty" experiment:"always" help:"sampling temperature (default: the server's)"`
	TopP              *float64          `yaml:"top_p,omitempty" experiment:"always" help:"nucleus sampling (default: the server's)"`
	MaxTokens         int               `yaml:"max_tokens" experiment:"always" help:"most tokens of one reply (default: the server's)"`
	MaxTokensField    string            `yaml:"max_tokens_field,omitempty" experiment:"no" help:"name under which max_tokens is sent: max_tokens, max_completion_tokens, or auto (default), which takes the other one when the server refuses the first"`
	ReasoningEffort   string            `yaml:"reasoning_effort,omitempty" experiment:"given" help:"how hard a reasoning model thinks, such as low, medium or high (default: the server's)"`
	SendReasoning     string            `yaml:"send_reasoning,omitempty" experiment:"given" help:"send the model its earlier reasoning back: true, false, or auto (default), which gives OpenRouter the reasoning_details that came from it"`
	SendSeed          *bool             `yaml:"send_seed,omitempty" experiment:"given" help:"send a seed of its own with each request (default true), unless the server refuses it"`
	ToolChoice        string            `yaml:"tool_choice,omitempty" experiment:"given" help:"what the model must do where it has tools: auto, none, required, required_first (in the first turn alone), or the name of a tool, wherever an episode has it (default: nothing is said)"`
	ParallelToolCalls *bool             `yaml:"parallel_tool_calls,omitempty" experiment:"given" help:"let a turn have several calls (default: the server's)"`
	Provider          map[string]any    `yaml:"provider,omitempty" experiment:"given"` // OpenRouter's routing, sent as it is
	Stream            bool              `yaml:"stream" experiment:"no" help:"stream replies, so that a stalled one is noticed early"`
	ToolFormat        string            `yaml:"tool_format,omitempty" experiment:"given" help:"format of tool calls that the server leaves in the text of a reply, such as hermes or kimi_k2; native reads none and takes every text for an answer (default: what models of its name write, or any that is known)"`
	TokenIDs          string            `yaml:"token_ids,omitempty" experiment:"given" help:"ask the server for the ids and log probabilities of all tokens and keep them: auto, vllm, sglang or llamacpp (default: no)"`
	ExtraBody         map[string]any    `yaml:"extra_body,omitempty" experiment:"always"` // merged into each request
	Headers           map[string]string `yaml:"headers,omitempty" experiment:"no"`        // sent with each request, and written to run.json
	HeaderEnv         map[string]string `yaml:"header_env,omitempty" experiment:"no"`     // header → environment variable that holds its secret value
	Fallbacks         []fallback        `yaml:"fallbacks,omitempty" experiment:"given"`   // models that answer when the one before cannot be had
}

// checkModel says what is wrong with the keys about the model.
func (f *File) checkModel() error {
	m := f.Model
	problems := []error{model.CheckToolFormat(m.ToolFormat)}
	for name := range m.Headers {
		if secretHeader.MatchString(name) {
			problems = append(problems, fmt.Errorf("header %q usually holds a secret, and headers are written to run.json: put it under header_env: {%s: NAME_OF_ENVIRONMENT_VARIABLE}", name, name))
		}
	}
	if len(m.Endpoints) > 0 && (m.BaseURL != "" || f.Scripted.Policy != "") {
		problems = append(problems, errors.New("endpoints are given together with base_url or policy, which say where the model is, too; leave one out"))
	}
	if f.Scripted.Policy != "" && m.BaseURL != "" {
		problems = append(problems, errors.New("both policy and base_url are given: a policy plays against the embedded server; leave one out"))
	}
	if f.Scripted.Policy == "" && m.Name == "" && len(f.Sweep.Model) == 0 {
		problems = append(problems, errors.New("no model: give --model NAME (and --base-url URL), or --policy oracle to play without one"))
	}
	return errors.Join(problems...)
}

// baseURL is where the model is, or the first of the endpoints that have it.
func (f *File) baseURL() string {
	if len(f.Model.Endpoints) > 0 {
		return f.Model.Endpoints[0]
	}
	return cmp.Or(f.Model.BaseURL, DefaultBaseURL)
}

// DefaultBaseURL is where a model is when the run file does not say.
const DefaultBaseURL = "https://api.openai.com/v1"

// secretHeader finds the names of headers that must not be written down.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password`)

// tokenServer is whom the model's client asks for token ids. YAML's true and false are what people write first.
func (f *File) tokenServer() string {
	switch f.Model.TokenIDs {
	case "true":
		return model.TokenIDsAuto
	case "false":
		return ""
	}
	return f.Model.TokenIDs
}

// APIKey reads the endpoint's key. OPENAI_API_KEY is sent to its own host alone: no other gets it unasked.
func APIKey(name, baseURL string) (string, error) {
	if name == "" {
		if at, err := url.Parse(baseURL); baseURL != "" && (err != nil || at.Hostname() != "api.openai.com") {
			return "", nil
		}
		name = "OPENAI_API_KEY"
	}
	key := os.Getenv(name)
	if key == "" {
		return "", fmt.Errorf("environment variable %s is empty: export %s=..., or name another with --api-key-env", name, name)
	}
	return key, nil
}

// secretHeaders adds the headers whose values the environment holds. These are secrets.
func secretHeaders(open, env map[string]string) (headers map[string]string, secrets []string, err error) {
	headers = maps.Clone(open)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := os.Getenv(env[name])
		if value == "" {
			return nil, nil, fmt.Errorf("environment variable %s (for header %s) is empty", env[name], name)
		}
		if headers == nil {
			headers = map[string]string{}
		}
		headers[name] = value
		secrets = append(secrets, value)
	}
	return headers, secrets, nil
}

// ReplayFrom answers from a journal.
func ReplayFrom(reader *journal.Reader) func(string) ([]episode.Message, bool) {
	return func(id string) ([]episode.Message, bool) {
		ep, err := reader.Episode(id)
		if err != nil {
			return nil, false
		}
		return ep.Messages, true
	}
}

// replayDigest names what a journal holds.
func replayDigest(reader *journal.Reader) string {
	hash := sha256.New()
	for _, entry := range reader.Entries() {
		fmt.Fprintln(hash, entry.ID, entry.Attempt)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))[:16]
}
