package scripted

import (
	"encoding/json"
	"strings"
)

// How the chat template changes what was said in earlier turns, as the templates of real models do. What it leaves
// alone makes the prompt of a turn begin with the tokens of the turn before it, prompt and reply.
const (
	DriftNone       = "none"
	DriftThinking   = "strip-thinking" // reasoning of earlier turns is left out
	DriftWhitespace = "whitespace"     // arguments of earlier calls get a space behind each comma and colon
)

// Drifts lists the names that Config.Drift takes.
func Drifts() []string { return []string{DriftNone, DriftThinking, DriftWhitespace} }

// render writes the prompt that a model would get, in ChatML: the system message with the tools in it, the messages,
// results of tools as the user's, and the opening of the reply. before is what of it was the prompt of the turn
// before this one, as far as the last assistant message tells.
func (s *Server) render(req *request, t *tally) (before int) {
	messages := req.Messages
	t.text("<|im_start|>system\n")
	if m := &messages[0]; m.Role == "system" || m.Role == "developer" {
		t.content(m.Content)
		messages = messages[1:]
	} else {
		t.text("You are a helpful assistant.")
	}
	if len(req.Tools) > 0 {
		t.text("\n\n# Tools\n\nThe functions that you may call:\n<tools>")
		for _, tool := range req.Tools {
			t.text("\n")
			t.text(string(tool))
		}
		t.text("\n</tools>")
	}
	t.text("<|im_end|>\n")
	calls := 0
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case "assistant":
			t.text("<|im_start|>assistant\n")
			before = t.n
			for _, part := range s.written(m, calls) {
				t.text(part.text)
			}
			calls += len(m.ToolCalls)
			t.text("<|im_end|>\n")
		case "tool":
			if i == 0 || messages[i-1].Role != "tool" {
				t.text("<|im_start|>user")
			}
			t.text("\n<tool_response>\n")
			t.content(m.Content)
			t.text("\n</tool_response>")
			if i+1 == len(messages) || messages[i+1].Role != "tool" {
				t.text("<|im_end|>\n")
			}
		default:
			t.text("<|im_start|>" + m.Role + "\n")
			t.content(m.Content)
			t.text("<|im_end|>\n")
		}
	}
	t.text("<|im_start|>assistant\n")
	return before
}

// written is an assistant message of the request as the model wrote it, but for the drift.
func (s *Server) written(m *message, callsBefore int) []segment {
	said := turn{content: m.Content.text(), reasoning: m.Reasoning.text()}
	if said.reasoning == "" {
		said.reasoning = m.OtherReasoning.text()
	}
	if s.cfg.Drift == DriftThinking {
		said.reasoning = ""
		if at := strings.LastIndex(said.content, "</think>"); at >= 0 {
			said.content = strings.TrimLeft(said.content[at+len("</think>"):], "\n")
		}
	}
	for _, c := range m.ToolCalls {
		args := c.Function.Arguments
		if s.cfg.Drift == DriftWhitespace {
			args = spaced(args)
		}
		said.calls = append(said.calls, call{id: c.ID, name: c.Function.Name, args: args})
	}
	return s.write(said, callsBefore)
}

// spaced puts a space behind each comma and colon of a JSON document; what is none stays as it is.
func spaced(args string) string {
	if !json.Valid([]byte(args)) {
		return args
	}
	var b strings.Builder
	inside, escaped := false, false
	for i := range len(args) {
		c := args[i]
		b.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ':') && (i+1 == len(args) || args[i+1] != ' '):
			b.WriteByte(' ')
		}
	}
	return b.String()
}
