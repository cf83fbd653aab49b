package datasets

import (
	"encoding/json"
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

// isHermes recognizes a conversation of turns with from and value, as Hermes and ShareGPT have them.
func isHermes(c columns) bool {
	return c.has("conversations") && !c.has("prompt") && !c.has("messages") && kindOf(structured(c["conversations"])) == "a list"
}

// speakers are the names that turns have.
var speakers = map[string]string{
	"system": "system", "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
	"tool": "tool", "function": "tool", "observation": "tool",
}

func hermesFields(b *builder, c columns) {
	items, err := elements(structured(c["conversations"]))
	if err != nil {
		b.wrong.addf("conversations: %v", err)
		return
	}
	var turns []said
	for i, item := range items {
		one, err := columnsIn(item)
		if err != nil {
			b.wrong.addf("conversations[%d]: %v with from and value", i, err)
			return
		}
		role, known := speakers[one.text("from")]
		if !known {
			b.wrong.addf("conversations[%d]: from is %q, want system, human, gpt or tool", i, one.text("from"))
			return
		}
		turn := said{Message: episode.Message{Role: role, Content: one.text("value")}}
		switch {
		case role == "assistant":
			turn.read()
		case role == "system" && strings.Contains(turn.Content, "<tools>"):
			// Written for the tools of that run: the agent has other tools, and its server shows them.
			b.note("system", "left out: it lists the tools of the run that the conversation is of")
			turn.Content = ""
		}
		turns = append(turns, turn)
	}
	if text := c.text("system"); text != "" && (len(turns) == 0 || turns[0].Role != "system") {
		b.set("system", text)
	}
	b.play(turns)
	if c.has("toolsets_used") {
		if used, err := asNames(c["toolsets_used"]); err == nil && len(used) > 0 {
			b.set("toolsets", used)
		}
	}
	b.copy(c, "id")
}

// read takes a turn apart: <think>, <tool_call> and the rest.
func (s *said) read() {
	text := strings.TrimSpace(s.Content)
	if rest, ok := strings.CutPrefix(text, "<think>"); ok {
		thought, after, closed := strings.Cut(rest, "</think>")
		if !closed {
			s.wrong.addf("<think> has no end")
		}
		s.Reasoning, text = strings.TrimSpace(thought), after
	}
	var content strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "<tool_call>")
		content.WriteString(before)
		if !found {
			break
		}
		call, rest, closed := strings.Cut(after, "</tool_call>")
		call = strings.TrimSpace(call)
		if !closed || !json.Valid([]byte(call)) {
			s.wrong.addf("<tool_call> %d cannot be read back", n)
			break
		}
		s.Calls = append(s.Calls, readCall(&s.wrong, fmt.Sprintf("call %d", n), json.RawMessage(call)))
		text = rest
	}
	s.Content = strings.TrimSpace(content.String())
}
