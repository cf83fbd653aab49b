package scripted

import (
	"encoding/json"
	"io"
	"net/http"
)

// reply is what the server will send: it is ready before any waiting begins, and a request that waits holds nothing
// else.
type reply struct {
	id, model string
	segments  []segment // what was written, with the mark that ends it
	turn      turn      // what the client sees of it
	finish    string
	stopped   *string // the stop text that ended it
	usage     usage
	key       string // of the draws of its log probabilities
	stream    bool
	withUsage bool // at the end of the stream
	prompt    json.RawMessage
	tokens    bool // token_ids are wanted
	logprob   bool
	top       int
	weights   string
	as        string // Config.ReasoningAs
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	PromptMore struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionMore struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// compose makes the reply of a turn: it obeys what the request says about tools, format and length, and counts.
func (s *Server) compose(req *request, next next, id string) (*reply, *refusal) {
	prompt := tally{keep: req.ReturnTokenIDs}
	if prompt.keep {
		prompt.ids = make([]int32, 0, req.size)
	}
	before := s.render(req, &prompt)
	limit := req.limit()
	if room := s.cfg.Context; room > 0 {
		if prompt.n+max(limit, 1) > room {
			return nil, s.tooLong(room, prompt.n, limit)
		}
		if limit == 0 {
			limit = room - prompt.n
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
		id: id, model: req.Model, finish: "stop", key: next.who + next.place(), stream: req.Stream, tokens: req.ReturnTokenIDs,
		logprob: req.Logprobs, weights: s.cfg.WeightVersion, as: s.cfg.ReasoningAs,
		withUsage: req.StreamOptions != nil && req.StreamOptions.IncludeUsage,
	}
	if req.TopLogprobs != nil {
		r.top = *req.TopLogprobs
	}
	if req.ReturnTokenIDs {
		r.prompt = list(prompt.ids)
	}
	r.segments = append(s.write(t, req.callsBefore()), segment{text: "<|im_end|>"})
	if len(req.stops) > 0 {
		if short, stop, ok := stopAt(r.segments, req.stops); ok {
			r.segments, r.stopped = short, &stop
		}
	}
	if limit > 0 && size(r.segments) > limit {
		r.segments, r.finish, r.stopped = cut(r.segments, limit), "length", nil
	}
	r.turn = seen(r.segments, t.calls)
	if len(r.turn.calls) > 0 && r.finish == "stop" && r.stopped == nil && req.choice.name == "" {
		r.finish = "tool_calls" // a call that was asked for by its name ends with "stop", as OpenAI has it
	}
	u := &r.usage
	u.Prompt, u.Completion = prompt.n, size(r.segments)
	if next.position > 0 {
		u.PromptMore.Cached = before
	}
	for _, part := range r.segments {
		if part.part == reasoningPart {
			u.CompletionMore.Reasoning += countTokens(part.text)
		}
	}
	u.Total = u.Prompt + u.Completion
	return r, nil
}

// filter ends the reply in its middle, as a content filter does.
func (r *reply) filter() {
	calls := r.turn.calls
	r.segments, r.finish, r.stopped = cut(r.segments, r.usage.Completion/2), "content_filter", nil
	r.turn = seen(r.segments, calls)
	r.usage.Completion = size(r.segments)
	r.usage.Total = r.usage.Prompt + r.usage.Completion
}

// callsBefore is the number of calls that were made so far.
func (r *request) callsBefore() int {
	n := 0
	for i := range r.Messages {
		n += len(r.Messages[i].ToolCalls)
	}
	return n
}

type completion struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	Created     int64             `json:"created"`
	Model       string            `json:"model"`
	Choices     []wireChoice      `json:"choices"`
	Usage       *usage            `json:"usage,omitempty"`
	Fingerprint string            `json:"system_fingerprint"`
	Metadata    map[string]string `json:"metadata,omitempty"` // SGLang; of a stream, where that has none, in the last event
}

type wireChoice struct {
	Index    int             `json:"index"`
	Message  *spoken         `json:"message,omitempty"`
	Delta    *outward        `json:"delta,omitempty"`
	Logprobs *logprobs       `json:"logprobs,omitempty"`
	Finish   *string         `json:"finish_reason"`
	Stop     *string         `json:"stop_reason,omitempty"`
	TokenIDs json.RawMessage `json:"token_ids,omitempty"`
}

// spoken is a whole message: its content is null beside calls, and never absent.
type spoken struct {
	Role    string  `json:"role"`
	Content *string `json:"content"`
	thought
	ToolCalls []outwardCall `json:"tool_calls,omitempty"`
}

// outward is a part of a message.
type outward struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
	thought
	ToolCalls []outwardCall `json:"tool_calls,omitempty"`
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

type outwardCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (c call) outward(index *int) outwardCall {
	o := outwardCall{Index: index, ID: c.id, Type: "function"}
	o.Function.Name, o.Function.Arguments = c.name, c.args
	return o
}

func (r *reply) envelope(object string) completion {
	return completion{ID: r.id, Object: object, Created: created, Model: r.model, Fingerprint: "scripted"}
}

func (r *reply) metadata() map[string]string {
	if r.weights == "" {
		return nil
	}
	return map[string]string{"weight_version": r.weights}
}

// details adds what belongs to these tokens, number from and on, if it was asked for.
func (r *reply) details(c *wireChoice, ids []int32, from int) {
	if r.tokens {
		c.TokenIDs = list(ids)
	}
	if r.logprob {
		c.Logprobs = r.logprobs(ids, from)
	}
}

// whole answers in one piece. A faulty reply is cut in its middle.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, out *reply, fault string) {
	if fault == "error" {
		writeJSON(w, http.StatusOK, brokenOff.body())
		return
	}
	m := &spoken{Role: "assistant", thought: out.thought(out.turn.reasoning)}
	if out.turn.content != "" || len(out.turn.calls) == 0 {
		m.Content = &out.turn.content
	}
	for _, c := range out.turn.calls {
		m.ToolCalls = append(m.ToolCalls, c.outward(nil))
	}
	body := out.envelope("chat.completion")
	body.Usage, body.Metadata = &out.usage, out.metadata()
	body.Choices = []wireChoice{{Message: m, Finish: &out.finish, Stop: out.stopped}}
	if out.tokens || out.logprob {
		var ids []int32
		for _, part := range out.segments {
			ids = encode(ids, part.text)
		}
		out.details(&body.Choices[0], ids, 0)
	}
	text := out.withPrompt(literal(body))
	switch fault {
	case "stall", "cut":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text[:len(text)/2])
		if fault == "stall" {
			s.hang(w, r)
		}
	default:
		writeText(w, http.StatusOK, text)
	}
}

// withPrompt adds prompt_token_ids to the document of a reply, or to the first event of a stream, where vLLM has them.
// encoding/json would read the list twice to do it.
func (r *reply) withPrompt(document string) string {
	if r.prompt == nil {
		return document
	}
	return document[:len(document)-1] + `,"prompt_token_ids":` + string(r.prompt) + "}"
}
