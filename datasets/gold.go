package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// defaultAnswer ends a gold that only names a command.
const defaultAnswer = "Done."

// gold takes a list of steps, {"command": ..., "answer": ...}, {"answer": ...}, or the answer as plain text. Text that
// is JSON counts as JSON only when it has one of these forms, as an answer may well be JSON.
func (d *decoder) gold(field string, value json.RawMessage) {
	if text, ok := asString(value); ok {
		inner := structured(value)
		if _, still := asString(inner); still || !looksLikeGold(inner) {
			if strings.TrimSpace(text) == "" {
				d.wrong.addf("%s: it is empty", field)
			}
			d.task.Gold = []episode.Step{{Content: text}}
			return
		}
		value = inner
	}
	switch kindOf(value) {
	case "an object":
		d.goldCommand(field, value)
	case "a list":
		items, err := elements(value)
		if err != nil || len(items) == 0 {
			d.wrong.addf("%s: an empty list; leave the field out for a task without a reference solution", field)
			return
		}
		for i, item := range items {
			d.goldStep(fmt.Sprintf("%s[%d]", field, i), item)
		}
	default:
		d.wrong.addf("%s: %s, want a list of steps, {\"command\": ...}, {\"answer\": ...} or the answer as a string", field, kindOf(value))
	}
}

func looksLikeGold(value json.RawMessage) bool {
	hasKey := func(object json.RawMessage, keys ...string) bool {
		entries, err := members(object)
		return err == nil && slices.ContainsFunc(entries, func(m member) bool { return slices.Contains(keys, m.name) })
	}
	if kindOf(value) == "an object" {
		return hasKey(value, "command", "answer")
	}
	items, err := elements(value)
	return err == nil && len(items) > 0 && !slices.ContainsFunc(items, func(item json.RawMessage) bool {
		return !hasKey(item, "content", "tool_calls")
	})
}

func (d *decoder) goldCommand(field string, value json.RawMessage) {
	entries, err := members(value)
	if err != nil {
		d.wrong.addf("%s: %v", field, err)
		return
	}
	command, answer := "", ""
	for _, entry := range entries {
		switch entry.name {
		case "command":
			command, _ = d.text(field+".command", entry.value)
		case "answer":
			text, err := asText(entry.value)
			if err != nil {
				d.wrong.addf("%s.answer: %v", field, err)
			}
			answer = text
		default:
			d.wrong.addf("%s: unknown key %q (have command, answer)", field, entry.name)
		}
	}
	switch {
	case strings.TrimSpace(command) != "":
		arguments, err := encode(map[string]string{"command": command})
		if err != nil {
			d.wrong.addf("%s.command: %v", field, err)
		}
		d.task.Gold = append(d.task.Gold, episode.Step{Calls: []episode.GoldCall{{Name: "terminal", Arguments: arguments}}})
		if strings.TrimSpace(answer) == "" {
			answer = defaultAnswer
		}
	case strings.TrimSpace(answer) == "":
		d.wrong.addf("%s: it has neither a command nor an answer", field)
	}
	d.task.Gold = append(d.task.Gold, episode.Step{Content: answer})
}

func (d *decoder) goldStep(at string, value json.RawMessage) {
	entries, err := members(value)
	if err != nil {
		d.wrong.addf("%s: %v with content or tool_calls", at, err)
		return
	}
	before := len(d.wrong)
	var step episode.Step
	for _, entry := range entries {
		switch entry.name {
		case "role":
			if role, _ := asString(entry.value); role != "assistant" {
				d.wrong.addf("%s: role is %s; a gold has only the assistant's turns, results come from the tools", at, entry.value)
			}
		case "content":
			step.Content = d.content(at+".content", entry.value)
		case "reasoning":
			step.Reasoning, _ = d.text(at+".reasoning", entry.value)
		case "tool_calls":
			step.Calls = d.goldCalls(at+".tool_calls", entry.value)
		default:
			d.wrong.addf("%s: unknown key %q (have content, reasoning, role, tool_calls)", at, entry.name)
		}
	}
	if len(step.Calls) == 0 && strings.TrimSpace(step.Content) == "" && len(d.wrong) == before {
		d.wrong.addf("%s: it has neither tool_calls nor content", at)
	}
	d.task.Gold = append(d.task.Gold, step)
}

func (d *decoder) goldCalls(at string, value json.RawMessage) []episode.GoldCall {
	items, err := elements(structured(value))
	if err != nil {
		d.wrong.addf("%s: %v of calls", at, err)
	}
	var calls []episode.GoldCall
	for i, item := range items {
		call, err := goldCall(item)
		if err != nil {
			d.wrong.addf("%s[%d]: %v", at, i, err)
		}
		calls = append(calls, call)
	}
	return calls
}

// goldCall takes {name, arguments} or OpenAI's {id, type, function: {name, arguments}}.
func goldCall(value json.RawMessage) (episode.GoldCall, error) {
	entries, err := members(value)
	if err != nil {
		return episode.GoldCall{}, err
	}
	call := episode.GoldCall{Arguments: json.RawMessage("{}")}
	for _, entry := range entries {
		switch entry.name {
		case "function":
			if kindOf(entry.value) == "an object" && len(entries) <= 3 {
				return goldCall(entry.value)
			}
			return call, errors.New("function must be an object with name and arguments")
		case "name":
			call.Name, _ = asString(entry.value)
		case "arguments":
			if call.Arguments, err = goldArguments(entry.value); err != nil {
				return call, err
			}
		case "id", "type": // names that the episode gives anew
		default:
			return call, fmt.Errorf("unknown key %q (have name, arguments, or function with both)", entry.name)
		}
	}
	if strings.TrimSpace(call.Name) == "" {
		return call, errors.New("the call names no tool")
	}
	return call, nil
}

// goldArguments keeps the order of the keys: a gold is played as it was written.
func goldArguments(value json.RawMessage) (json.RawMessage, error) {
	if string(value) == `""` {
		return json.RawMessage("{}"), nil // how some servers write a call without arguments
	}
	value = structured(value)
	if kindOf(value) != "an object" {
		return nil, fmt.Errorf("arguments are %s, want an object or its JSON text", kindOf(value))
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, value)
	return compact.Bytes(), err
}

// checkGold checks that all of a gold can be played: a step without calls is an answer, and an answer ends the episode or is
// followed by the next message of the user.
func (d *decoder) checkGold() {
	if len(d.task.Gold) == 0 || len(d.wrong) > 0 {
		return
	}
	if len(d.task.Gold[len(d.task.Gold)-1].Calls) > 0 {
		d.wrong.addf("gold: the last step makes tool calls, want one with the final answer alone")
	}
	answers, questions := 0, 0
	for _, step := range d.task.Gold {
		if len(step.Calls) == 0 {
			answers++
		}
	}
	for _, message := range d.task.Prompt {
		if message.Role == "user" {
			questions++
		}
	}
	if answers > questions {
		d.wrong.addf("gold: %d steps have no tool calls, but each is an answer and the user has %d message(s): what follows would not be played", answers, questions)
	}
}
