package datasets

import (
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

// said is one turn of a dataset's conversation.
type said struct {
	episode.Message
	wrong problems // why a turn of the assistant cannot be a step of a reference solution
}

// play makes a task of a conversation: the user's messages become the prompt, and the assistant's turns the reference solution.
// Results of its tools are dropped, as the tools run again.
func (b *builder) play(turns []said) {
	var users []map[string]string
	var gold []episode.Step
	var unread error
	answered := 0
	for i, turn := range turns {
		switch turn.Role {
		case "system":
			if i > 0 {
				b.wrong.addf("turn %d: a system message can only come first", i+1)
			}
			if strings.TrimSpace(turn.Content) != "" {
				b.set("system", turn.Content)
			}
		case "user":
			if len(users) != answered && unread == nil {
				unread = fmt.Errorf("turn %d is the user's before the assistant has answered", i+1)
			}
			users = append(users, map[string]string{"role": "user", "content": turn.Content})
		case "assistant":
			step := stepOf(turn.Message)
			if len(step.Calls) == 0 && step.Content == "" {
				turn.wrong.addf("the assistant says nothing")
			}
			if len(turn.wrong) > 0 && unread == nil {
				unread = fmt.Errorf("turn %d: %s", i+1, turn.wrong[0])
			}
			if len(step.Calls) == 0 {
				answered++
			}
			gold = append(gold, step)
		case "tool":
		default:
			b.wrong.addf("turn %d is of %q, want system, user, assistant or tool", i+1, turn.Role)
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
	case unread == nil && turns[len(turns)-1].Role != "assistant" || unread == nil && answered != len(users):
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

func (b *builder) chatTurn(at string, c columns) (turn said) {
	if turn.Role = c.text("role"); turn.Role == "developer" {
		turn.Role = "system"
	}
	if c.has("content") && turn.Role != "tool" {
		turn.Content = readContent(&b.wrong, at+".content", c["content"])
	}
	if turn.Role == "assistant" {
		turn.Reasoning = c.text("reasoning_content")
		if c.has("tool_calls") {
			readCalls(&turn.wrong, &turn.Message, "tool_calls", c["tool_calls"])
		}
		for _, text := range []*string{&turn.Content, &turn.Reasoning} {
			if strings.TrimSpace(*text) == "" {
				*text = ""
			}
		}
	}
	return turn
}
