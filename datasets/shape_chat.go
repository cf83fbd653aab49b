package datasets

import (
	"encoding/json"
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

// said is one turn of a dataset's conversation.
type said struct {
	episode.Message
	content json.RawMessage // of the user, as the row has it
	wrong   problems        // why a turn of the assistant cannot be a step of a reference solution
}

// play makes a task of a conversation: the user's messages become the prompt, and the assistant's turns the reference solution.
// Results of its tools are dropped, as the tools run again.
func (b *builder) play(turns []said) {
	if len(b.wrong) > 0 {
		return
	}
	var users []map[string]any
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
			said := any(turn.Content)
			if len(turn.Parts) > 0 {
				said = turn.content
			}
			users = append(users, map[string]any{"role": "user", "content": said})
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

// turns reads a list of turns, each of which is an object.
func (b *builder) turns(name string, list json.RawMessage, read func(at string, c columns) said) (turns []said) {
	items, err := elements(structured(list))
	if err != nil {
		b.wrong.addf("%s: %v of turns", name, err)
	}
	for i, each := range items {
		c, err := columnsIn(each)
		if err != nil {
			b.wrong.addf("%s: %v", item(name, i), err)
			continue
		}
		turns = append(turns, read(item(name, i), c))
	}
	return turns
}

// chatFields takes messages as OpenAI's API has them.
func chatFields(b *builder, c columns) {
	name := "messages"
	if !c.has(name) && c.has("prompt") && kindOf(structured(c["prompt"])) == "a list" {
		name = "prompt"
	}
	b.play(b.turns("messages", c[name], b.chatTurn))
	b.copy(c, "id")
}

func (b *builder) chatTurn(at string, c columns) (turn said) {
	if turn.Role = c.text("role"); turn.Role == "developer" {
		turn.Role = "system"
	}
	if c.has("content") && turn.Role == "user" {
		turn.Content, turn.Parts = readParts(&b.wrong, at+".content", c["content"])
		turn.content = c["content"]
	} else if c.has("content") && turn.Role != "tool" {
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
	turns := b.turns("conversations", c["conversations"], b.hermesTurn)
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

func (b *builder) hermesTurn(at string, c columns) said {
	role, known := speakers[c.text("from")]
	if !known {
		b.wrong.addf("%s: from is %q, want system, human, gpt or tool", at, c.text("from"))
	}
	turn := said{Message: episode.Message{Role: role, Content: c.text("value")}}
	switch {
	case role == "assistant":
		turn.read()
	case role == "system" && strings.Contains(turn.Content, "<tools>"):
		// Written for the tools of that run: the agent has other tools, and its server shows them.
		b.note("system", "left out: it lists the tools of the run that the conversation is of")
		turn.Content = ""
	}
	return turn
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
