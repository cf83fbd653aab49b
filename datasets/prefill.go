package datasets

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// ReadMessages reads a conversation that is put before every task's prompt: a JSON or YAML list of messages of users, assistants and
// tools. Every call must have a result, as servers require. One error lists all mistakes.
func ReadMessages(path string) ([]episode.Message, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	list := json.RawMessage(string([]rune(string(data)))) // what is not UTF-8 is read as U+FFFD
	if !json.Valid(data) {
		root, err := ParseYAML(data)
		if err == nil && root != nil {
			list, err = encodeYAML(root, plainText)
		}
		if err != nil {
			return nil, fmt.Errorf("read messages %s: %w", path, err)
		}
	}
	if len(strings.TrimSpace(string(list))) == 0 {
		return nil, fmt.Errorf("read messages %s: it is empty, want a list of messages", path)
	}
	var d decoder
	messages := d.conversation(list)
	if len(d.wrong) > 0 {
		return nil, fmt.Errorf("read messages %s: %s", path, d.wrong)
	}
	return messages, nil
}

// conversation takes an earlier conversation, with calls and results.
func (d *decoder) conversation(value json.RawMessage) []episode.Message {
	items, err := elements(value)
	if err != nil {
		d.wrong.addf("%v of messages such as {\"role\": \"user\", \"content\": \"...\"}", err)
		return nil
	}
	if len(items) == 0 {
		d.wrong.addf("an empty list; leave it out")
	}
	messages := make([]episode.Message, len(items))
	open := map[string]string{} // calls that wait for a result → the tool's name
	for i, item := range items {
		at := fmt.Sprintf("[%d]", i)
		m := d.spoken(at, item)
		if m.Role == "tool" {
			name, waits := open[m.ToolCallID]
			if !waits {
				d.wrong.addf("%s: tool_call_id is %q, and no call of that id waits for a result", at, m.ToolCallID)
			}
			if waits && m.Name != "" && m.Name != name {
				d.wrong.addf("%s: name is %q, and the call %q was of %q; leave it out, or write the same", at, m.Name, m.ToolCallID, name)
			}
			m.Name = name
			delete(open, m.ToolCallID)
		} else {
			d.answered(at, open)
		}
		for _, call := range m.Calls {
			if _, twice := open[call.ID]; twice || call.ID == "" {
				d.wrong.addf("%s: every call needs an id of its own", at)
			}
			open[call.ID] = call.Name
		}
		messages[i] = m
	}
	d.answered("the end", open)
	return messages
}

// answered checks that no call is left without a result.
func (d *decoder) answered(at string, open map[string]string) {
	for _, id := range slices.Sorted(maps.Keys(open)) {
		d.wrong.addf("%s: the call %q has no result before it", at, id)
	}
	clear(open)
}

// spoken takes one message of a conversation.
func (d *decoder) spoken(at string, value json.RawMessage) (m episode.Message) {
	entries, err := members(value)
	if err != nil {
		d.wrong.addf("%s: %v with role and content", at, err)
		return m
	}
	before := len(d.wrong)
	keys := map[string][]string{
		"user":      {"role", "content"},
		"assistant": {"role", "content", "reasoning", "reasoning_content", "tool_calls"},
		"tool":      {"role", "content", "tool_call_id", "name"},
	}
	for _, entry := range entries {
		if entry.name == "role" {
			m.Role, _ = asString(entry.value)
		}
	}
	allowed, known := keys[m.Role]
	if !known {
		d.wrong.addf("%s: role is %q, want user, assistant or tool (a system prompt has its own setting)", at, m.Role)
		return m
	}
	for _, entry := range entries {
		switch {
		case !slices.Contains(allowed, entry.name):
			d.wrong.addf("%s: unknown key %q (have %s)", at, entry.name, strings.Join(allowed, ", "))
		case entry.name == "content":
			m.Content = d.content(at+".content", entry.value)
		case entry.name == "reasoning", entry.name == "reasoning_content":
			m.Reasoning, _ = d.text(at+"."+entry.name, entry.value)
		case entry.name == "tool_call_id":
			m.ToolCallID, _ = d.text(at+".tool_call_id", entry.value)
		case entry.name == "name":
			m.Name, _ = d.text(at+".name", entry.value)
		case entry.name == "tool_calls":
			m.Calls = d.spokenCalls(at+".tool_calls", entry.value)
		}
	}
	if m.Role != "tool" && len(m.Calls) == 0 && strings.TrimSpace(m.Content) == "" && len(d.wrong) == before {
		d.wrong.addf("%s: content is empty", at)
	}
	return m
}

// spokenCalls takes the calls of a message, with their ids: results refer to them.
func (d *decoder) spokenCalls(at string, value json.RawMessage) (calls []episode.Call) {
	items, err := elements(value)
	if err != nil {
		d.wrong.addf("%s: %v of calls", at, err)
	}
	for i, item := range items {
		call, err := goldCall(item)
		if err != nil {
			d.wrong.addf("%s[%d]: %v", at, i, err)
			continue
		}
		spoken := episode.Call{Name: call.Name, Arguments: string(call.Arguments)}
		if entries, err := members(item); err == nil {
			for _, entry := range entries {
				if entry.name == "id" {
					spoken.ID, _ = asString(entry.value)
				}
			}
		}
		calls = append(calls, spoken)
	}
	return calls
}
