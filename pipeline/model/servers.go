package model

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// server has the habits of one kind of model server. Requests follow those of the server whose host is in the base URL, or that
// Config.TokenIDs names. Replies and errors are read with the habits of all servers, as a gateway passes on another's answer.
type server struct {
	name  string
	hosts []string // a host that begins with a dot also matches all its subdomains

	limit    string   // the name of the limit of a reply
	details  bool     // wants the reasoning details of earlier turns back
	tokens   []string // body fields that ask for token ids, each set to true
	whole    string   // why a stream has no token ids
	noTokens bool     // never sends token ids

	reply  func(d *draft, r *wireReply)  // reads fields that the server adds to a reply
	choice func(d *draft, c *wireChoice) // reads fields that the server adds to a choice
	window []string                      // paths of the window in the server's description of a model

	says      words
	problem   func(p *problem, fields map[string]json.RawMessage) // reads fields that the server adds to an error
	errorType string                                              // header with the type of an error
	requestID string                                              // header with the id of an exchange
}

// words are the servers' words in errors, in lower case, by the class of error.
type words map[string][]string

// addedToReply and addedToChoice have the fields that some servers add.
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

func init() { // not an initializer, as functions of some entries range over servers
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

// at reports whether a base URL belongs to the server.
func (s *server) at(base string) bool {
	u, err := url.Parse(base)
	return err == nil && slices.ContainsFunc(s.hosts, func(host string) bool {
		return u.Hostname() == host || host[0] == '.' && strings.HasSuffix(u.Hostname(), host)
	})
}

// serverAt combines the servers whose host is in one of the base URLs.
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
