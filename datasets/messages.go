package datasets

import (
	"encoding/json"
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

// prompt takes a string or a list of chat messages, under either name.
func (d *decoder) prompt(field string, value json.RawMessage) {
	if len(d.task.Prompt) > 0 {
		d.wrong.addf("prompt and messages are both there, want one of them")
		return
	}
	if text, ok := asString(value); ok && field == "prompt" {
		if strings.TrimSpace(text) == "" {
			d.wrong.addf("%s: it is empty", field)
		}
		d.task.Prompt = append(d.task.Prompt, episode.Message{Role: "user", Content: text})
		return
	}
	items, err := elements(structured(value))
	if err != nil {
		d.wrong.addf("%s: %v of chat messages such as {\"role\": \"user\", \"content\": \"...\"}", field, err)
		return
	}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		message, ok := d.message(at, item)
		switch {
		case !ok:
		case message.Role != "system":
			d.task.Prompt = append(d.task.Prompt, message)
		case i > 0:
			d.wrong.addf("%s: a system message can only come first", at)
		default:
			d.setSystem(message.Content)
		}
	}
	if n := len(d.task.Prompt); n > 0 && d.task.Prompt[n-1].Role != "user" {
		d.wrong.addf("%s: the last message is the assistant's; a prompt ends with the user's (a reference answer belongs in gold; the shape chat reads whole conversations)", field)
	} else if n == 0 && len(d.wrong) == 0 {
		d.wrong.addf("%s: there is no message from the user", field)
	}
}

// message takes a message of a prompt. It refuses tool calls of an earlier conversation instead of dropping them, as the model would
// then see another conversation than the dataset's.
func (d *decoder) message(at string, value json.RawMessage) (episode.Message, bool) {
	entries, err := members(value)
	if err != nil {
		d.wrong.addf("%s: %v with role and content", at, err)
		return episode.Message{}, false
	}
	before := len(d.wrong)
	var message episode.Message
	for _, entry := range entries {
		switch entry.name {
		case "role":
			message.Role, _ = asString(entry.value)
		case "content":
			message.Content = d.content(at+".content", entry.value)
		default:
			d.wrong.addf("%s: unknown key %q (have role, content)", at, entry.name)
		}
	}
	switch message.Role {
	case "developer":
		message.Role = "system" // the newer name for the same thing
	case "system", "user", "assistant":
	default:
		d.wrong.addf("%s: role is %q, want system, user or assistant", at, message.Role)
	}
	if strings.TrimSpace(message.Content) == "" && len(d.wrong) == before {
		d.wrong.addf("%s: content is empty", at)
	}
	return message, len(d.wrong) == before
}

// content takes a string or a list of text parts, which are joined by line breaks.
func (d *decoder) content(at string, value json.RawMessage) string {
	if text, ok := asString(value); ok {
		return text
	}
	items, err := elements(value)
	if err != nil {
		d.wrong.addf("%s: %s, want a string or a list of text parts", at, kindOf(value))
		return ""
	}
	var parts []string
	for i, item := range items {
		part, err := textPart(item)
		if err != nil {
			d.wrong.addf("%s[%d]: %v", at, i, err)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n")
}

func textPart(value json.RawMessage) (string, error) {
	if text, ok := asString(value); ok {
		return text, nil
	}
	entries, err := members(value)
	if err != nil {
		return "", err
	}
	kind, text, found := "", "", false
	for _, entry := range entries {
		switch entry.name {
		case "type":
			kind, _ = asString(entry.value)
		case "text":
			text, found = asString(entry.value)
		}
	}
	if kind != "text" || !found {
		return "", fmt.Errorf(`a part of type %q, want {"type": "text", "text": "..."}`, kind)
	}
	return text, nil
}

func (d *decoder) system(field string, value json.RawMessage) {
	if text, ok := asString(value); ok {
		d.setSystem(text)
		return
	}
	d.wrong.addf("%s: %s, want a string", field, kindOf(value))
}

// setSystem takes the system prompt from its field or from the messages, whichever comes first in the row.
func (d *decoder) setSystem(text string) {
	if d.task.System != "" && d.task.System != text {
		d.wrong.addf("the system prompt is there twice: in system and as the first message")
		return
	}
	d.task.System = text
}
