package model

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// server is what one kind of model server does in its own way. Requests are written for those that are known by their host,
// or are named by Config.TokenIDs. Replies and errors are read for all of them: a gateway hands on what another said.
type server struct {
	name  string
	hosts []string // one that begins with a dot stands for all below it

	limit    string   // the name of the limit of a reply
	details  bool     // the reasoning of earlier turns goes back as it came
	tokens   []string // body fields that make it tell token ids, each set to true
	whole    string   // why it tells none in a stream
	noTokens bool     // it never tells any

	reply  func(d *draft, r *wireReply)  // takes what it adds to a reply
	choice func(d *draft, c *wireChoice) // takes what it adds to a choice
	window []string                      // where its description of a model has the window

	says      words
	problem   func(p *problem, fields map[string]json.RawMessage) // takes what it adds to an error
	errorType string                                              // header with the type of an error
	requestID string                                              // header with the name of an exchange
}

// words are what servers say, in lower case, by the class of error that it means.
type words map[string][]string

// addedToReply and addedToChoice have the fields that one server or another adds.
type (
	addedToReply struct {
		PromptTokenIDs wireIDs         `json:"prompt_token_ids"` // vLLM; of a stream in its first chunk
		Provider       json.RawMessage `json:"provider"`         // OpenRouter
		Metadata       json.RawMessage `json:"metadata"`         // SGLang's has the weight_version
		WeightVersion  json.RawMessage `json:"weight_version"`   // SGLang
	}
	addedToChoice struct {
		NativeFinishReason json.RawMessage `json:"native_finish_reason"` // OpenRouter
		TokenIDs           wireIDs         `json:"token_ids"`            // vLLM, newer SGLang
		PromptTokenIDs     wireIDs         `json:"prompt_token_ids"`     // SGLang
		MetaInfo           json.RawMessage `json:"meta_info"`            // SGLang
	}
)

var servers []*server

func init() { // what some of them do ranges over all of them
	servers = []*server{
		{name: "anthropic", requestID: "Request-Id", says: words{
			ClassQuota:           {"credit balance is too low", "reached your specified api usage limit", "reached your specified workspace api usage limit"},
			ClassRequestTooLarge: {"request_too_large", "required for long context requests"},
		}},
		{name: "azure", hosts: []string{".openai.azure.com"}, limit: LimitCompletion, requestID: "Apim-Request-Id", says: words{
			ClassContentPolicy: {"content management policy", "responsibleaipolicyviolation"},
			ClassAuth:          {"invalid subscription key"},
			ClassModelNotFound: {"deploymentnotfound"},
		}},
		{name: "bedrock", requestID: "X-Amzn-Requestid", errorType: "X-Amzn-Errortype", says: words{
			ClassContextOverflow: {"input is too long"},
			ClassRateLimit:       {"throttlingexception", "please wait before trying again"},
			ClassModelNotFound:   {"provided model identifier is invalid"},
		}},
		{name: "dashscope", says: words{ClassContentPolicy: {"data_inspection_failed"}}},
		{name: "fireworks", says: words{ClassQuota: {"monthly spending limit"}}},
		&gemini,
		{name: "github", says: words{ClassRequestTooLarge: {"tokens_limit_reached"}}},
		{name: "groq", window: []string{"context_window"}, says: words{
			ClassMalformed: {"tool_use_failed"}, // the model wrote a call so badly that the server could not read it
		}},
		{name: "litellm", says: words{
			ClassQuota:           {"budget_exceeded", "budget has been exceeded", "exceeded budget", "exceededbudget"},
			ClassContextOverflow: {"contextwindowexceedederror"},
			ClassModelNotFound:   {"invalid model name passed"},
		}},
		{name: "llamacpp", tokens: []string{"logprobs"}, window: []string{"meta.n_ctx"}, says: words{ClassContextOverflow: {brokenOverflow}}},
		{name: "lmstudio", window: []string{"loaded_context_length", "max_context_length"}, says: words{ClassContextOverflow: {"context the overflows"}}},
		{name: "mistral", window: []string{"max_context_length"}, says: words{ClassContextOverflow: {"too large for model with"}}},
		{name: "moonshot", says: words{ClassQuota: {"exceeded_current_quota_error"}}},
		{name: "ollama", says: words{ClassOverloaded: {"server busy", "no slots available"}}},
		{name: "openai", hosts: []string{"api.openai.com"}, limit: LimitCompletion, noTokens: true,
			says: words{ClassQuota: {"insufficient_quota", "billing_hard_limit", "billing_not_active"}}},
		&openRouter,
		&sglang,
		{name: "together", window: []string{"context_length"}, says: words{ClassContextOverflow: {"`inputs` tokens + `max_new_tokens` must be"}}},
		{name: "vllm", tokens: []string{"return_token_ids", "logprobs"}, window: []string{"max_model_len"},
			says:   words{ClassContextOverflow: {"maximum model length", "max_tokens must be at least 1, got -"}},
			reply:  func(d *draft, r *wireReply) { d.tokens.asked(r.PromptTokenIDs) },
			choice: func(d *draft, c *wireChoice) { d.tokens.completion.add(c.TokenIDs) },
		},
	}
	for _, s := range servers {
		for class, more := range s.says {
			says[class] = append(says[class], more...)
		}
	}
}

// at says whether a base URL is one of the server's.
func (s *server) at(base string) bool {
	u, err := url.Parse(base)
	return err == nil && slices.ContainsFunc(s.hosts, func(host string) bool {
		return u.Hostname() == host || host[0] == '.' && strings.HasSuffix(u.Hostname(), host)
	})
}

// serverAt is what requests are written for: those of the servers whose host is in one of the base URLs, as one.
func serverAt(bases []string) (all server) {
	for _, s := range servers {
		if slices.ContainsFunc(bases, s.at) {
			all.limit, all.details = cmp.Or(all.limit, s.limit), all.details || s.details
		}
	}
	return all
}

var gemini = server{
	name: "gemini",
	says: words{
		ClassContextOverflow: {"input token count exceeds"},
		ClassContentPolicy:   {"prohibited_content"},
		ClassAuth:            {"api key not valid"},
		ClassRateLimit:       {"resource_exhausted"},
	},
	problem: func(p *problem, fields map[string]json.RawMessage) {
		var details []struct{ RetryDelay string }
		p.State = text(fields["status"])
		if json.Unmarshal(fields["details"], &details) == nil {
			for _, detail := range details {
				p.RetryDelay = cmp.Or(p.RetryDelay, detail.RetryDelay)
			}
		}
	},
}
