package datasets

import (
	"encoding/json"
	"fmt"
	"strings"
)

// said is one turn of a dataset's conversation.
type said struct {
	role string // system, user, assistant, tool
	text string
	step map[string]any // of an assistant: the step of a reference solution
	err  error          // why the turn cannot be one
}

// play makes a task of a conversation: the user's messages become the prompt, and the assistant's turns the reference solution.
// Results of its tools are dropped, as the tools run again.
func (b *builder) play(turns []said) {
	var users []map[string]string
	var gold []any
	var unread error
	answered := 0
	for i, turn := range turns {
		switch turn.role {
		case "system":
			if i > 0 {
				b.wrong.addf("turn %d: a system message can only come first", i+1)
			}
			if strings.TrimSpace(turn.text) != "" {
				b.set("system", turn.text)
			}
		case "user":
			if len(users) != answered && unread == nil {
				unread = fmt.Errorf("turn %d is the user's before the assistant has answered", i+1)
			}
			users = append(users, map[string]string{"role": "user", "content": turn.text})
		case "assistant":
			if turn.err != nil && unread == nil {
				unread = fmt.Errorf("turn %d: %w", i+1, turn.err)
			}
			if turn.step["tool_calls"] == nil {
				answered++
			}
			gold = append(gold, turn.step)
		case "tool":
		default:
			b.wrong.addf("turn %d is of %q, want system, user, assistant or tool", i+1, turn.role)
		}
	}
	if len(users) == 0 {
		b.wrong.addf("there is no turn of the user")
		return
	}
	b.set("messages", users)
	b.note("judged", "not: a conversation does not say what would be right")
	switch {
	case len(gold) == 0:
		return
	case unread == nil && turns[len(turns)-1].role != "assistant" || unread == nil && answered != len(users):
		unread = fmt.Errorf("%d turns of the user have %d answers", len(users), answered)
	}
	if unread != nil {
		b.note("gold", "none: %v", unread)
		return
	}
	b.set("gold", gold)
}

// chatFields takes messages as OpenAI's API has them.
func chatFields(b *builder, c columns) {
	name := "messages"
	if !c.has(name) && c.has("prompt") && kindOf(structured(c["prompt"])) == "a list" {
		name = "prompt"
	}
	items, err := elements(structured(c[name]))
	if err != nil {
		b.wrong.addf("messages: %v of chat messages", err)
		return
	}
	var turns []said
	for i, item := range items {
		entries, err := members(item)
		if err != nil {
			b.wrong.addf("messages[%d]: %v", i, err)
			return
		}
		turns = append(turns, b.chatTurn(fmt.Sprintf("messages[%d]", i), columnsOf(entries)))
	}
	b.play(turns)
	if c.has("id") {
		b.fields = append(b.fields, member{"id", c["id"]})
	}
}

func (b *builder) chatTurn(at string, c columns) said {
	turn := said{role: c.text("role")}
	if turn.role == "developer" {
		turn.role = "system"
	}
	if c.has("content") && turn.role != "tool" {
		var d decoder
		turn.text = d.content(at+".content", c["content"])
		b.wrong = append(b.wrong, d.wrong...)
	}
	if turn.role != "assistant" {
		return turn
	}
	turn.step = map[string]any{}
	calls, err := elements(structured(c["tool_calls"]))
	if c.has("tool_calls") && err != nil {
		turn.err = fmt.Errorf("tool_calls: %w", err)
	}
	turn.fill(turn.text, c.text("reasoning_content"), calls)
	return turn
}

// fill makes the step of an assistant's turn, or says why it is none.
func (s *said) fill(content, reasoning string, calls []json.RawMessage) {
	step := map[string]any{}
	if strings.TrimSpace(content) != "" {
		step["content"] = content
	}
	if strings.TrimSpace(reasoning) != "" {
		step["reasoning"] = reasoning
	}
	var read []any
	for i, call := range calls {
		parsed, err := goldCall(structured(call))
		if err != nil && s.err == nil {
			s.err = fmt.Errorf("call %d: %w", i+1, err)
		}
		read = append(read, map[string]any{"name": parsed.Name, "arguments": parsed.Arguments})
	}
	switch {
	case len(read) > 0:
		step["tool_calls"] = read
	case step["content"] == nil && s.err == nil:
		s.err = fmt.Errorf("the assistant says nothing")
	}
	s.step = step
}
