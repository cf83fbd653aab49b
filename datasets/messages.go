package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/pipeline/episode"
)

// The keys of chat messages in OpenAI's form, by who says them.
var (
	promptKeys    = keys[episode.Message]{"role": messageRole, "content": promptContent}
	assistantKeys = keys[episode.Message]{
		"role": messageRole, "content": messageContent, "tool_calls": readCalls,
		"reasoning": messageReasoning, "reasoning_content": messageReasoning,
	}
	resultKeys = keys[episode.Message]{
		"role": messageRole, "content": messageContent,
		"tool_call_id": field(asPlain, func(m *episode.Message) *string { return &m.ToolCallID }),
		"name":         field(asPlain, func(m *episode.Message) *string { return &m.Name }),
	}
)

var (
	messageRole      = field(asPlain, func(m *episode.Message) *string { return &m.Role })
	messageReasoning = field(asPlain, func(m *episode.Message) *string { return &m.Reasoning })
)

func messageContent(p *problems, m *episode.Message, at string, value json.RawMessage) {
	m.Content = readContent(p, at, value)
}

// promptContent also takes images.
func promptContent(p *problems, m *episode.Message, at string, value json.RawMessage) {
	m.Content, m.Parts = readParts(p, at, value)
}

// readContent takes a string or a list of text parts, which are joined by line breaks.
func readContent(p *problems, at string, value json.RawMessage) string {
	if text, ok := asString(value); ok {
		return text
	}
	items, err := elements(value)
	if err != nil {
		p.addf("%s: %s, want a string or a list of text parts", at, kindOf(value))
	}
	parts := make([]string, len(items))
	for i, part := range items {
		if parts[i], err = asTextPart(part); err != nil {
			p.addf("%s: %v", item(at, i), err)
		}
	}
	return strings.Join(parts, "\n")
}

func asTextPart(value json.RawMessage) (string, error) {
	if text, ok := asString(value); ok {
		return text, nil
	}
	part, err := columnsIn(value)
	if err != nil {
		return "", err
	}
	text, found := asString(part["text"])
	if kind := part.text("type"); kind != "text" || !found {
		return "", fmt.Errorf(`a part of type %q, want {"type": "text", "text": "..."}`, kind)
	}
	return text, nil
}

// callKeys are the keys of a call, {name, arguments}, and those of OpenAI's {id, type, function: {name, arguments}}.
var callKeys = keys[episode.Call]{
	"id":        field(asText, func(c *episode.Call) *string { return &c.ID }),
	"type":      func(*problems, *episode.Call, string, json.RawMessage) {},
	"name":      functionKeys["name"],
	"arguments": functionKeys["arguments"],
	"function":  object(functionKeys, func(c *episode.Call) *episode.Call { return c }),
}

var functionKeys = keys[episode.Call]{
	"name":      field(asPlain, func(c *episode.Call) *string { return &c.Name }),
	"arguments": field(asArguments, func(c *episode.Call) *string { return &c.Arguments }),
}

func readCalls(p *problems, m *episode.Message, at string, value json.RawMessage) {
	for i, value := range p.list(at, value, "calls") {
		m.Calls = append(m.Calls, readCall(p, item(at, i), value))
	}
}

func readCall(p *problems, at string, value json.RawMessage) episode.Call {
	call := episode.Call{Arguments: "{}"}
	if callKeys.whole(p, &call, at, value) && strings.TrimSpace(call.Name) == "" {
		p.addf("%s: the call names no tool", at)
	}
	return call
}

// asArguments keeps the order of the keys: a call is played as it was written.
func asArguments(value json.RawMessage) (string, error) {
	if string(value) == `""` {
		return "{}", nil // how some servers write a call without arguments
	}
	value = structured(value)
	if kindOf(value) != "an object" {
		return "", fmt.Errorf("%s, want an object or its JSON text", kindOf(value))
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, value)
	return compact.String(), err
}

// readPrompt takes a string or a list of chat messages, under either name. It refuses tool calls of an earlier conversation
// instead of dropping them, as the model would then see another conversation than the dataset's.
func readPrompt(p *problems, t *episode.Task, at string, value json.RawMessage) {
	if len(t.Prompt) > 0 {
		p.addf("prompt and messages are both there, want one of them")
		return
	}
	if text, ok := asString(value); ok && at == "prompt" {
		if strings.TrimSpace(text) == "" {
			p.addf("%s: it is empty", at)
		}
		t.Prompt = append(t.Prompt, episode.Message{Role: "user", Content: text})
		return
	}
	before := len(*p)
	for i, value := range p.list(at, value, `chat messages such as {"role": "user", "content": "..."}`) {
		place := item(at, i)
		var message episode.Message
		if !promptKeys.whole(p, &message, place, value) {
			continue
		}
		switch {
		case !slices.Contains([]string{"system", "developer", "user", "assistant"}, message.Role):
			p.addf("%s: role is %q, want system, user or assistant", place, message.Role)
		case len(message.Parts) > 0 && message.Role != "user":
			p.addf("%s: only a message of the user can have images", place)
		case strings.TrimSpace(message.Content) == "" && len(message.Parts) == 0:
			p.addf("%s: content is empty", place)
		case message.Role == "user" || message.Role == "assistant":
			t.Prompt = append(t.Prompt, message)
		case i > 0:
			p.addf("%s: a system message can only come first", place)
		default:
			setSystem(p, t, message.Content)
		}
	}
	if n := len(t.Prompt); n > 0 && t.Prompt[n-1].Role != "user" {
		p.addf("%s: the last message is the assistant's; a prompt ends with the user's (a reference answer belongs in gold; the shape chat reads whole conversations)", at)
	} else if n == 0 && len(*p) == before {
		p.addf("%s: there is no message from the user", at)
	}
}

func readSystem(p *problems, t *episode.Task, at string, value json.RawMessage) {
	text, ok := asString(value)
	if !ok {
		p.addf("%s: %s, want a string", at, kindOf(value))
	}
	setSystem(p, t, text)
}

// setSystem takes the system prompt from its field or from the messages, whichever comes first in the row.
func setSystem(p *problems, t *episode.Task, text string) {
	if t.System != "" && t.System != text {
		p.addf("the system prompt is there twice: in system and as the first message")
		return
	}
	t.System = text
}

// ReadMessages reads a conversation that is put before every task's prompt: a JSON or YAML list of messages of users, assistants and
// tools. Every call must have a result, as servers require. One error lists all mistakes.
func ReadMessages(path string) ([]episode.Message, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	list := json.RawMessage(strings.ToValidUTF8(string(data), "\ufffd"))
	if !json.Valid(data) {
		var root *yaml.Node
		if root, err = ParseYAML(data); err == nil && root != nil {
			list, err = encodeYAML(root, plainText)
		}
	}
	if err == nil && len(bytes.TrimSpace(list)) == 0 {
		err = errors.New("it is empty, want a list of messages")
	}
	if err != nil {
		return nil, fmt.Errorf("read messages %s: %w", path, err)
	}
	var p problems
	messages := readConversation(&p, list)
	if len(p) > 0 {
		return nil, fmt.Errorf("read messages %s: %s", path, p)
	}
	return messages, nil
}

// readConversation takes an earlier conversation, with calls and results.
func readConversation(p *problems, value json.RawMessage) []episode.Message {
	items, err := elements(value)
	if err != nil {
		p.addf("%v of messages such as {\"role\": \"user\", \"content\": \"...\"}", err)
	} else if len(items) == 0 {
		p.addf("an empty list; leave it out")
	}
	messages := make([]episode.Message, len(items))
	open := map[string]string{} // calls that wait for a result → the tool's name
	answered := func(at string) {
		for _, id := range slices.Sorted(maps.Keys(open)) {
			p.addf("%s: the call %q has no result before it", at, id)
		}
		clear(open)
	}
	for i, value := range items {
		at := item("", i)
		m := readTurn(p, at, value)
		if m.Role != "tool" {
			answered(at)
		} else {
			name, waits := open[m.ToolCallID]
			if !waits {
				p.addf("%s: tool_call_id is %q, and no call of that id waits for a result", at, m.ToolCallID)
			} else if m.Name != "" && m.Name != name {
				p.addf("%s: name is %q, and the call %q was of %q; leave it out, or write the same", at, m.Name, m.ToolCallID, name)
			}
			m.Name = name
			delete(open, m.ToolCallID)
		}
		for _, call := range m.Calls {
			if _, twice := open[call.ID]; twice || call.ID == "" {
				p.addf("%s: every call needs an id of its own", at)
			}
			open[call.ID] = call.Name
		}
		messages[i] = m
	}
	answered("the end")
	return messages
}

// readTurn takes one message of a conversation.
func readTurn(p *problems, at string, value json.RawMessage) (m episode.Message) {
	columns, err := columnsIn(value)
	if err != nil {
		p.addf("%s: %v with role and content", at, err)
		return m
	}
	byRole := map[string]keys[episode.Message]{"user": promptKeys, "assistant": assistantKeys, "tool": resultKeys}
	allowed := byRole[columns.text("role")]
	if allowed == nil {
		p.addf("%s: role is %q, want user, assistant or tool (a system prompt has its own setting)", at, columns.text("role"))
		return m
	}
	if allowed.whole(p, &m, at, value) && m.Role != "tool" && len(m.Calls)+len(m.Parts) == 0 && strings.TrimSpace(m.Content) == "" {
		p.addf("%s: content is empty", at)
	}
	return m
}
