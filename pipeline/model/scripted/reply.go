package scripted

import (
	"cmp"
	"fmt"

	openai "github.com/sashabaranov/go-openai"
)

// reply is what the server will send: it is ready before any waiting begins.
type reply struct {
	completion           // what the document, or each event of the stream, begins with
	segments   []segment // what was written, with the mark that ends it
	message    outward   // what the client sees of it
	finish     string
	usage      openai.Usage
	key        string   // of the draws of its log probabilities
	prompt     []int32  // nil when tokens are not wanted
	req        *request // without what may be large
	cfg        *Config
}

// compose makes the reply of a turn: it obeys what the request says about tools, format and length, and counts.
func (c *Config) compose(req *request, next next, id string) (*reply, *refusal) {
	prompt, before, calls := c.render(req)
	size, limit := countTokens(prompt), req.limit()
	if c.Context > 0 {
		if size+max(limit, 1) > c.Context {
			return nil, c.tooLong(c.Context, size, limit)
		}
		if limit == 0 {
			limit = c.Context - size
		}
	}
	t := req.obey(next.turn)
	for i := range t.calls {
		t.calls[i].id = cmp.Or(t.calls[i].id, fmt.Sprintf("call_%s%02x", next.key, i))
	}
	if req.ReasoningEffort == "none" {
		t.reasoning = ""
	}
	r := &reply{
		completion: completion{ID: id, Object: "chat.completion", Created: created, Model: req.Model, Fingerprint: "scripted"},
		finish:     "stop", key: next.key, req: req, cfg: c,
		usage: openai.Usage{PromptTokens: size, PromptTokensDetails: &openai.PromptTokensDetails{},
			CompletionTokensDetails: &openai.CompletionTokensDetails{}},
	}
	r.Metadata.WeightVersion = c.WeightVersion
	if req.ReturnTokenIDs {
		r.prompt = encode(prompt)
	}
	if next.position > 0 {
		r.usage.PromptTokensDetails.CachedTokens = countTokens(before)
	}
	segments := append(c.write(t, calls), segment{text: "<|im_end|>"})
	if short := cut(segments, limit); limit > 0 && len(whole(short)) < len(whole(segments)) {
		segments, r.finish = short, "length"
	}
	r.end(segments)
	if len(r.message.ToolCalls) > 0 && r.finish == "stop" && req.choice.name == "" {
		r.finish = "tool_calls" // a call that was asked for by its name ends with "stop", as OpenAI has it
	}
	req.Messages, req.Tools, req.offered = nil, nil, nil // a request that waits holds little memory
	return r, nil
}

// end settles what is written.
func (r *reply) end(segments []segment) {
	r.segments, r.message = segments, outward{Role: "assistant", Content: ""}
	for _, part := range segments {
		if part.show != nil {
			part.show(&r.message, part.text)
		}
	}
	r.usage.CompletionTokens = countTokens(whole(segments))
	r.usage.CompletionTokensDetails.ReasoningTokens = countTokens(cmp.Or(r.message.ReasoningContent, r.message.Reasoning))
	r.usage.TotalTokens = r.usage.PromptTokens + r.usage.CompletionTokens
}

// filter ends the reply in its middle, as a content filter does.
func (r *reply) filter() {
	r.finish = "content_filter"
	r.end(cut(r.segments, r.usage.CompletionTokens/2))
}

// completion is a document that is sent, or an event of a stream.
type completion struct {
	ID          string        `json:"id"`
	Object      string        `json:"object"`
	Created     int64         `json:"created"`
	Model       string        `json:"model"`
	Choices     []choice      `json:"choices"`
	Usage       *openai.Usage `json:"usage,omitempty"`
	Fingerprint string        `json:"system_fingerprint"`
	Metadata    struct {
		WeightVersion string `json:"weight_version"`
	} `json:"metadata,omitzero"` // SGLang
	Prompt []int32 `json:"prompt_token_ids,omitempty"` // vLLM; of a stream, in the first event
}

type choice struct {
	Index    int       `json:"index"`
	Message  *outward  `json:"message,omitempty"`
	Delta    *outward  `json:"delta,omitempty"`
	Logprobs *logprobs `json:"logprobs,omitempty"`
	Finish   *string   `json:"finish_reason"`
	TokenIDs []int32   `json:"token_ids,omitzero"`
}

// outward is a message or a part of one.
type outward struct {
	Role             string     `json:"role,omitempty"`
	Content          any        `json:"content,omitempty"` // a whole message has one that is null beside calls
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Reasoning        string     `json:"reasoning,omitempty"`
	Details          []detail   `json:"reasoning_details,omitempty"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
}

type detail struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Index int    `json:"index"`
}

// choice is what belongs to a text whose tokens begin with number from, as far as it was asked for.
func (r *reply) choice(text string, from int) (c choice) {
	if text == "" {
		return c
	}
	if r.req.ReturnTokenIDs {
		c.TokenIDs = encode(text)
	}
	if r.req.Logprobs {
		c.Logprobs = r.logprobs(encode(text), from)
	}
	return c
}

// document is the reply in one piece.
func (r *reply) document() string {
	message := r.message
	for i := range message.ToolCalls {
		message.ToolCalls[i].Index = nil
	}
	if message.Content == "" && len(message.ToolCalls) > 0 {
		message.Content = (*string)(nil)
	}
	c := r.choice(whole(r.segments), 0)
	c.Message, c.Finish = &message, &r.finish
	body := r.completion
	body.Choices, body.Usage, body.Prompt = []choice{c}, &r.usage, r.prompt
	return literal(body)
}
