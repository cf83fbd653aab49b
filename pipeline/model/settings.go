package model

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// Settings are the model and how it is asked, as in the run file. A client does not read the environment: its opener does, and
// puts the key and the secret headers into Config.
type Settings struct {
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
	Vision            bool              `yaml:"vision,omitempty" experiment:"given" help:"the model takes images: tools show it what they see, and prompts may have images"`
	Stream            bool              `yaml:"stream" experiment:"no" help:"stream replies, so that a stalled one is noticed early"`
	ToolFormat        string            `yaml:"tool_format,omitempty" experiment:"given" help:"format of tool calls that the server leaves in the text of a reply, such as hermes or kimi_k2; native reads none and takes every text for an answer (default: what models of its name write, or any that is known)"`
	TokenIDs          string            `yaml:"token_ids,omitempty" experiment:"given" help:"ask the server for the ids and log probabilities of all tokens and keep them: auto, vllm, sglang or llamacpp (default: no)"`
	ExtraBody         map[string]any    `yaml:"extra_body,omitempty" experiment:"always"` // merged into each request
	Headers           map[string]string `yaml:"headers,omitempty" experiment:"no"`        // sent with each request, and written to run.json
	HeaderEnv         map[string]string `yaml:"header_env,omitempty" experiment:"no"`     // header → environment variable that holds its secret value
	Fallbacks         []Fallback        `yaml:"fallbacks,omitempty" experiment:"given"`   // models that answer when the one before cannot be had
}

// Patience has the timeouts, retries and limits of requests, as in the run file.
type Patience struct {
	Timeout        time.Duration `yaml:"timeout" flag:"request-timeout" experiment:"no" help:"most time of one request"`
	IdleTimeout    time.Duration `yaml:"idle_timeout,omitempty" experiment:"no" help:"most time in which a stream may be silent, before its first token and within (default 2m)"`
	Retries        int           `yaml:"retries" flag:"request-retries" experiment:"no" help:"retries of a request that failed in a way that may pass; an outage takes none of them"`
	EpisodeRetries int           `yaml:"episode_retries" flag:"episode-request-retries" experiment:"no" help:"retries of all requests of an episode; 0 sets no bound"`
	RetryShare     float64       `yaml:"retry_share" experiment:"no" help:"share of requests that retries may be once a hundred were made, or two for each worker; more of them wait. 0 sets no bound"`
	OutageLimit    time.Duration `yaml:"outage_limit" experiment:"no" help:"how long the run pauses while the endpoint does not answer, before it stops; 0 is for ever"`
	MaxInFlight    int           `yaml:"max_in_flight,omitempty" experiment:"no" help:"requests that an endpoint is sent at once, at most (default: workers); fewer while it refuses them"`
	MinInFlight    int           `yaml:"min_in_flight,omitempty" experiment:"no" help:"requests that an endpoint is sent at once even while it refuses them (default 1)"`
}

// Fallback is a model that is asked when the one before it fails.
type Fallback struct {
	Model     string `yaml:"model"`
	BaseURL   string `yaml:"base_url,omitempty"`    // default: the run's
	APIKeyEnv string `yaml:"api_key_env,omitempty"` // default with the run's base_url: the run's
}

// secretHeader finds the names of headers whose values must not be recorded.
var secretHeader = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password`)

// FallbackNames are the names of the models that may answer in another's place.
func (s Settings) FallbackNames() (names []string) {
	for _, next := range s.Fallbacks {
		names = append(names, next.Model)
	}
	return names
}

// Variables are the variables whose values are secrets.
func (s Settings) Variables() []string {
	all := []string{cmp.Or(s.APIKeyEnv, "OPENAI_API_KEY")}
	for _, next := range s.Fallbacks {
		all = append(all, next.APIKeyEnv)
	}
	return slices.AppendSeq(all, maps.Values(s.HeaderEnv))
}

// Validate says what is wrong with the section. Config.Validate says the rest.
func (s Settings) Validate() error {
	problems := []error{checkToolFormat(s.ToolFormat)}
	for name := range s.Headers {
		if secretHeader.MatchString(name) {
			problems = append(problems, fmt.Errorf("header %q usually holds a secret, and headers are written to run.json: put it under header_env: {%s: NAME_OF_ENVIRONMENT_VARIABLE}", name, name))
		}
	}
	return errors.Join(problems...)
}

// TokenServer is TokenIDs with true as auto and false as "", which users are likely to write.
func (s Settings) TokenServer() string {
	switch s.TokenIDs {
	case "true":
		return TokenIDsAuto
	case "false":
		return ""
	}
	return s.TokenIDs
}

// Seeded reports whether requests have a seed.
func (s Settings) Seeded() bool { return s.SendSeed == nil || *s.SendSeed }

// Validate says what is wrong with the section.
func (p Patience) Validate() error {
	var errs []error
	if p.Timeout == 0 {
		errs = append(errs, errors.New("requests.timeout (--request-timeout) is 0; over 0"))
	}
	if p.RetryShare > 1 {
		errs = append(errs, fmt.Errorf("requests.retry_share is %v; from 0 to 1", p.RetryShare))
	}
	if p.MaxInFlight > 0 && p.MinInFlight > p.MaxInFlight {
		errs = append(errs, fmt.Errorf("min_in_flight is %d and max_in_flight %d; the least first", p.MinInFlight, p.MaxInFlight))
	}
	return errors.Join(errs...)
}
