package datasets

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// said is one turn of a dataset's conversation.
type said struct {
	role      string // system, user, assistant, tool
	text      string
	reasoning string
	calls     []json.RawMessage
	err       error // why a turn of the assistant cannot be a step of a reference solution
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
			step, err := turn.step()
			if err != nil && unread == nil {
				unread = fmt.Errorf("turn %d: %w", i+1, err)
			}
			if len(turn.calls) == 0 {
				answered++
			}
			gold = append(gold, step)
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
		message, err := columnsIn(item)
		if err != nil {
			b.wrong.addf("messages[%d]: %v", i, err)
			return
		}
		turns = append(turns, b.chatTurn(fmt.Sprintf("messages[%d]", i), message))
	}
	b.play(turns)
	b.copy(c, "id")
}

func (b *builder) chatTurn(at string, c columns) said {
	turn := said{role: c.text("role")}
	if turn.role == "developer" {
		turn.role = "system"
	}
	if c.has("content") && turn.role != "tool" {
		turn.text = readContent(&b.wrong, at+".content", c["content"])
	}
	if turn.role == "assistant" {
		turn.reasoning = c.text("reasoning_content")
		calls, err := elements(structured(c["tool_calls"]))
		if turn.calls = calls; c.has("tool_calls") && err != nil {
			turn.err = fmt.Errorf("tool_calls: %w", err)
		}
	}
	return turn
}

// step is a turn of the assistant as a step of a reference solution, or the reason why it is none.
func (s said) step() (map[string]any, error) {
	step := map[string]any{}
	if strings.TrimSpace(s.text) != "" {
		step["content"] = s.text
	}
	if strings.TrimSpace(s.reasoning) != "" {
		step["reasoning"] = s.reasoning
	}
	var wrong problems
	var calls []any
	for i, value := range s.calls {
		call := readCall(&wrong, fmt.Sprintf("call %d", i+1), structured(value))
		calls = append(calls, map[string]any{"name": call.Name, "arguments": json.RawMessage(call.Arguments)})
	}
	switch {
	case s.err != nil:
		return nil, s.err
	case len(wrong) > 0:
		return nil, errors.New(wrong[0])
	case len(calls) > 0:
		step["tool_calls"] = calls
	case step["content"] == nil:
		return nil, errors.New("the assistant says nothing")
	}
	return step, nil
}
