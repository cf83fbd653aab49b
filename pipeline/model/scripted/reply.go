package scripted

import (
	openai "github.com/sashabaranov/go-openai"
)

// reply is what the server will send: it is ready before any waiting begins, and a request that waits holds nothing
// else.
type reply struct {
	completion           // what the document, or each event of the stream, begins with
	segments   []segment // what was written, with the mark that ends it
	turn       turn      // what the client sees of it
	finish     string
	stopped    *string // the stop text that ended it
	usage      openai.Usage
	key        string // of the draws of its log probabilities
	stream     bool
	withUsage  bool    // at the end of the stream
	prompt     []int32 // nil when tokens are not wanted
	logprob    bool
	top        int
	metadata   map[string]string
	as         string // Config.ReasoningAs
}

// compose makes the reply of a turn: it obeys what the request says about tools, format and length, and counts.
func (s *Server) compose(req *request, next next, id string) (*reply, *refusal) {
	prompt, before := s.cfg.render(req)
	size, limit := countTokens(prompt), req.limit()
	if room := s.cfg.Context; room > 0 {
		if size+max(limit, 1) > room {
			return nil, s.cfg.tooLong(room, size, limit)
		}
		if limit == 0 {
			limit = room - size
		}
	}
	t := req.obey(next.turn)
	next.number(t.calls)
	if req.ReasoningEffort == "none" {
		t.reasoning = ""
	}
	if f := req.ResponseFormat; f != nil && f.Type == "json_object" && len(t.calls) == 0 {
		t.content = onlyJSON(t.content)
	}
	r := &reply{
		completion: completion{ID: id, Object: "chat.completion", Created: created, Model: req.Model, Fingerprint: "scripted"},
		finish:     "stop", key: next.who + next.place(), stream: req.Stream, withUsage: req.StreamOptions.IncludeUsage,
		logprob: req.Logprobs, as: s.cfg.ReasoningAs,
		usage: openai.Usage{PromptTokens: size, PromptTokensDetails: &openai.PromptTokensDetails{}, CompletionTokensDetails: &openai.CompletionTokensDetails{}},
	}
	if req.TopLogprobs != nil {
		r.top = *req.TopLogprobs
	}
	if req.ReturnTokenIDs {
		r.prompt = encode(prompt)
	}
	if s.cfg.WeightVersion != "" {
		r.metadata = map[string]string{"weight_version": s.cfg.WeightVersion}
	}
	if next.position > 0 {
		r.usage.PromptTokensDetails.CachedTokens = countTokens(before)
	}
	segments := append(s.cfg.write(t, req.callsBefore()), segment{text: "<|im_end|>"})
	segments, r.stopped = stopAt(segments, req.stops)
	if short := cut(segments, limit); limit > 0 && len(whole(short)) < len(whole(segments)) {
		segments, r.finish, r.stopped = short, "length", nil
	}
	r.end(segments, t.calls)
	if len(r.turn.calls) > 0 && r.finish == "stop" && r.stopped == nil && req.choice.name == "" {
		r.finish = "tool_calls" // a call that was asked for by its name ends with "stop", as OpenAI has it
	}
	return r, nil
}

// end settles what is written.
func (r *reply) end(segments []segment, calls []call) {
	r.segments, r.turn = segments, seen(segments, calls)
	r.usage.CompletionTokens = size(segments)
	r.usage.CompletionTokensDetails.ReasoningTokens = countTokens(r.turn.reasoning)
	r.usage.TotalTokens = r.usage.PromptTokens + r.usage.CompletionTokens
}

// filter ends the reply in its middle, as a content filter does.
func (r *reply) filter() {
	r.finish, r.stopped = "content_filter", nil
	r.end(cut(r.segments, r.usage.CompletionTokens/2), r.turn.calls)
}

// callsBefore is the number of calls that were made so far.
func (r *request) callsBefore() int {
	n := 0
	for _, m := range r.Messages {
		n += len(m.ToolCalls)
	}
	return n
}

// completion is a document that is sent, or an event of a stream.
type completion struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	Created     int64             `json:"created"`
	Model       string            `json:"model"`
	Choices     []choice          `json:"choices"`
	Usage       *openai.Usage     `json:"usage,omitempty"`
	Fingerprint string            `json:"system_fingerprint"`
	Metadata    map[string]string `json:"metadata,omitempty"`         // SGLang; of a stream, where that has none, in the last event
	Prompt      []int32           `json:"prompt_token_ids,omitempty"` // vLLM; of a stream, in the first event
}

type choice struct {
	Index    int       `json:"index"`
	Message  *outward  `json:"message,omitempty"`
	Delta    *outward  `json:"delta,omitempty"`
	Logprobs *logprobs `json:"logprobs,omitempty"`
	Finish   *string   `json:"finish_reason"`
	Stop     *string   `json:"stop_reason,omitempty"`
	TokenIDs []int32   `json:"token_ids,omitzero"`
}

// outward is a message or a part of one.
type outward struct {
	Role    string `json:"role,omitempty"`
	Content any    `json:"content,omitempty"` // a whole message has one that is null beside calls
	thought
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// thought is reasoning in one of the fields that servers use for it.
type thought struct {
	ReasoningContent string   `json:"reasoning_content,omitempty"`
	Reasoning        string   `json:"reasoning,omitempty"`
	Details          []detail `json:"reasoning_details,omitempty"`
}

type detail struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Index int    `json:"index"`
}

func (r *reply) thought(text string) thought {
	switch {
	case text == "":
		return thought{}
	case r.as == ReasoningPlain:
		return thought{Reasoning: text}
	case r.as == ReasoningDetails:
		return thought{Reasoning: text, Details: []detail{{Type: "reasoning.text", Text: text}}}
	}
	return thought{ReasoningContent: text}
}

func (c call) wire(index *int) toolCall {
	wire := toolCall{Index: index, ID: c.id, Type: "function"}
	wire.Function.Name, wire.Function.Arguments = c.name, c.args
	return wire
}

// choice is a message with what belongs to its text, whose tokens begin with number from, as far as it was asked for.
func (r *reply) choice(message *outward, text string, from int) choice {
	c := choice{Delta: message}
	if text == "" || r.prompt == nil && !r.logprob {
		return c
	}
	ids := encode(text)
	if r.prompt != nil {
		c.TokenIDs = ids
	}
	if r.logprob {
		c.Logprobs = r.logprobs(ids, from)
	}
	return c
}

// document is the reply in one piece.
func (r *reply) document() string {
	message := &outward{Role: "assistant", Content: r.turn.content, thought: r.thought(r.turn.reasoning)}
	for _, c := range r.turn.calls {
		message.ToolCalls = append(message.ToolCalls, c.wire(nil))
	}
	if r.turn.content == "" && len(r.turn.calls) > 0 {
		message.Content = (*string)(nil)
	}
	c := r.choice(nil, whole(r.segments), 0)
	c.Message, c.Finish, c.Stop = message, &r.finish, r.stopped
	body := r.completion
	body.Choices, body.Usage, body.Metadata, body.Prompt = []choice{c}, &r.usage, r.metadata, r.prompt
	return literal(body)
}
