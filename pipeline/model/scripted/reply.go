package scripted

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// reply is a turn with all that the protocol puts around it.
type reply struct {
	turn
	id, model string
	finish    string
	usage     usage
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

type completion struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"`
	Created     int64    `json:"created"`
	Model       string   `json:"model"`
	Choices     []choice `json:"choices"`
	Usage       *usage   `json:"usage,omitempty"`
	Fingerprint string   `json:"system_fingerprint"`
}

type choice struct {
	Index   int      `json:"index"`
	Message *spoken  `json:"message,omitempty"`
	Delta   *outward `json:"delta,omitempty"`
	Finish  *string  `json:"finish_reason"`
}

// spoken is a whole message: its content is null beside calls, and never absent.
type spoken struct {
	Role      string        `json:"role"`
	Content   *string       `json:"content"`
	Reasoning string        `json:"reasoning_content,omitempty"`
	ToolCalls []outwardCall `json:"tool_calls,omitempty"`
}

// outward is a part of a message.
type outward struct {
	Role      string        `json:"role,omitempty"`
	Content   *string       `json:"content,omitempty"`
	Reasoning string        `json:"reasoning_content,omitempty"`
	ToolCalls []outwardCall `json:"tool_calls,omitempty"`
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

// newReply cuts the turn to the request's token limit and counts it.
func newReply(req *request, t turn, id string) reply {
	out := reply{turn: t, id: id, model: req.Model, finish: "stop"}
	if len(t.calls) > 0 {
		out.finish = "tool_calls"
	}
	if limit := req.limit(); limit > 0 && limit < tokens(t.size()) {
		out.turn, out.finish = t.cut(limit*4), "length"
	}
	u := &out.usage
	u.Prompt, u.PromptMore.Cached = req.usage()
	u.Completion, u.CompletionMore.Reasoning = tokens(out.size()), tokens(len(out.reasoning))
	u.Total = u.Prompt + u.Completion
	return out
}

// size is the number of bytes that count as tokens.
func (t turn) size() int {
	n := len(t.reasoning) + len(t.content)
	for _, c := range t.calls {
		n += len(c.name) + len(c.args)
	}
	return n
}

// cut is what a model would have got out within so many bytes.
func (t turn) cut(size int) turn {
	take := func(s string) string {
		n := min(len(s), size)
		for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		size -= n
		return s[:n]
	}
	short := turn{reasoning: take(t.reasoning), content: take(t.content)}
	for _, c := range t.calls {
		if size < len(c.name) {
			break
		}
		size -= len(c.name)
		c.args = take(c.args)
		short.calls = append(short.calls, c)
	}
	return short
}

func (r reply) envelope(object string) completion {
	return completion{ID: r.id, Object: object, Created: created, Model: r.model, Fingerprint: "scripted"}
}

// whole answers in one piece. A faulty reply is cut in its middle.
func (s *Server) whole(w http.ResponseWriter, r *http.Request, out reply, fault string) {
	if fault == "error" {
		writeJSON(w, http.StatusOK, newErrorBody("server_error", "", "scripted fault: error"))
		return
	}
	m := &spoken{Role: "assistant", Reasoning: out.reasoning}
	if out.content != "" || len(out.calls) == 0 {
		m.Content = &out.content
	}
	for _, c := range out.calls {
		m.ToolCalls = append(m.ToolCalls, c.outward(nil))
	}
	body := out.envelope("chat.completion")
	body.Choices, body.Usage = []choice{{Message: m, Finish: &out.finish}}, &out.usage
	switch fault {
	case "stall", "cut":
		text := literal(body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text[:len(text)/2])
		if fault == "stall" {
			s.hang(w, r)
		}
	default:
		writeJSON(w, http.StatusOK, body)
	}
}

func (c call) outward(index *int) outwardCall {
	o := outwardCall{Index: index, ID: c.id, Type: "function"}
	o.Function.Name, o.Function.Arguments = c.name, c.args
	return o
}

// stream answers in events.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, req *request, out reply, fault string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	chunks := out.chunks(s.pieceSize())
	flush := func() { http.NewResponseController(w).Flush() }
	var b bytes.Buffer
	for i, delta := range chunks {
		if fault != "" && fault != "slow" && i >= len(chunks)/2 {
			s.breakOff(w, r, fault)
			return
		}
		chunk := out.envelope("chat.completion.chunk")
		chunk.Choices = []choice{{Delta: delta}}
		if delta.Role == "" && delta.Content == nil && delta.Reasoning == "" && delta.ToolCalls == nil {
			chunk.Choices[0].Finish = &out.finish
		}
		b.Reset()
		b.WriteString("data: " + literal(chunk) + "\n\n")
		if _, err := w.Write(b.Bytes()); err != nil {
			return
		}
		if s.cfg.TokenDelay > 0 {
			flush()
			if !s.pause(r.Context(), s.cfg.TokenDelay) {
				return
			}
		}
	}
	if req.StreamOptions != nil && req.StreamOptions.IncludeUsage {
		last := out.envelope("chat.completion.chunk")
		last.Choices, last.Usage = []choice{}, &out.usage
		io.WriteString(w, "data: "+literal(last)+"\n\n")
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// breakOff ends a stream in its middle.
func (s *Server) breakOff(w http.ResponseWriter, r *http.Request, fault string) {
	switch fault {
	case "stall":
		s.hang(w, r)
	case "error": // the shape that go-openai does not recognise, behind a keep-alive comment
		io.WriteString(w, ": ping\n\ndata: "+strings.Replace(literal(newErrorBody("server_error", "", "scripted fault: error")), `{"error"`, `{ "error"`, 1)+"\n\n")
	}
}

// pieceSize is how much of a text one event carries: a token when they are meant to be slow.
func (s *Server) pieceSize() int {
	if s.cfg.TokenDelay > 0 {
		return 4
	}
	return 64
}

// chunks takes the reply apart as servers do; the last, empty one carries the finish reason.
func (r reply) chunks(size int) []*outward {
	empty := ""
	chunks := []*outward{{Role: "assistant", Content: &empty}}
	for _, piece := range pieces(r.reasoning, size) {
		chunks = append(chunks, &outward{Reasoning: piece})
	}
	for _, piece := range pieces(r.content, size) {
		chunks = append(chunks, &outward{Content: &piece})
	}
	for i, c := range r.calls {
		head := c
		head.args = ""
		chunks = append(chunks, &outward{ToolCalls: []outwardCall{head.outward(&i)}})
		for _, piece := range pieces(c.args, size) {
			part := outwardCall{Index: &i}
			part.Function.Arguments = piece
			chunks = append(chunks, &outward{ToolCalls: []outwardCall{part}})
		}
	}
	return append(chunks, &outward{})
}

// pieces cuts a text, never within a character.
func pieces(s string, size int) []string {
	var parts []string
	for len(s) > 0 {
		n := min(size, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		parts = append(parts, s[:n])
		s = s[n:]
	}
	return parts
}
