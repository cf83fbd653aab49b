package scripted

import (
	"cmp"
	"encoding/json"
	"regexp"
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
// before this one, as far as the last assistant message tells, and calls how many calls are in it.
func (c *Config) render(req *request) (prompt, before string, calls int) {
	var b strings.Builder
	say := func(role, text string) { b.WriteString("<|im_start|>" + role + "\n" + text + "<|im_end|>\n") }
	const reply = "<|im_start|>assistant\n"

	system, messages := "You are a helpful assistant.", req.Messages
	if role := messages[0].Role; role == "system" || role == "developer" {
		system, messages = messages[0].Content.text, messages[1:]
	}
	if len(req.Tools) > 0 {
		system += "\n\n# Tools\n\nThe functions that you may call:\n<tools>"
		for _, tool := range req.Tools {
			system += "\n" + string(tool)
		}
		system += "\n</tools>"
	}
	say("system", system)
	last := 0
	for i, m := range messages {
		switch m.Role {
		case "assistant":
			last = b.Len() + len(reply)
			say(m.Role, whole(c.written(m, calls)))
			calls += len(m.ToolCalls)
		case "tool":
			if i == 0 || messages[i-1].Role != "tool" {
				b.WriteString("<|im_start|>user")
			}
			b.WriteString("\n<tool_response>\n" + m.Content.text + "\n</tool_response>")
			if i+1 == len(messages) || messages[i+1].Role != "tool" {
				b.WriteString("<|im_end|>\n")
			}
		default:
			text := m.Content.text
			for _, s := range m.Content.images {
				text += s.written()
			}
			say(m.Role, text)
		}
	}
	b.WriteString(reply)
	return b.String(), b.String()[:last], calls
}

// written is an assistant message of the request as the model wrote it, but for the drift.
func (c *Config) written(m message, callsBefore int) []segment {
	said := turn{content: m.Content.text, reasoning: cmp.Or(m.Reasoning.text, m.OtherReasoning.text)}
	if c.Drift == DriftThinking {
		said.reasoning = ""
		if at := strings.LastIndex(said.content, "</think>"); at >= 0 {
			said.content = strings.TrimLeft(said.content[at+len("</think>"):], "\n")
		}
	}
	for _, made := range m.ToolCalls {
		args := made.Function.Arguments
		if c.Drift == DriftWhitespace && json.Valid([]byte(args)) {
			args = spaced(args)
		}
		said.calls = append(said.calls, call{id: made.ID, name: made.Function.Name, args: args})
	}
	return c.write(said, callsBefore)
}

var stringOrMark = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[,:] ?`)

// spaced puts a space behind each comma and colon of a JSON document.
func spaced(document string) string {
	return stringOrMark.ReplaceAllStringFunc(document, func(found string) string {
		if found[0] == '"' {
			return found
		}
		return found[:1] + " "
	})
}
