package scripted

import (
	"slices"
	"strings"
)

// segment is a piece of what the model writes: the tokens of a reply are those of its segments, one behind the other.
type segment struct {
	text   string
	show   show // nil for tags, which are not seen
	atomic bool // shown whole or not at all
}

// show adds a text, or a part of it, to a message, or to a part of one.
type show func(m *outward, text string)

// write puts a turn as the model writes it, in the format of Config.ToolFormat. callsBefore is the number of calls in
// the conversation so far.
func (c *Config) write(t turn, callsBefore int) []segment {
	var out []segment
	if t.reasoning != "" {
		tag, thought := show(nil), show(c.think)
		if c.ReasoningAs == ReasoningTags {
			tag, thought = (*outward).say, (*outward).say
		}
		out = append(out, segment{text: "<think>\n", show: tag}, segment{text: t.reasoning, show: thought},
			segment{text: "\n</think>\n\n", show: tag})
	}
	if t.content != "" {
		out = append(out, segment{text: t.content, show: (*outward).say})
	}
	if len(t.calls) > 0 && c.ToolFormat != "" {
		return append(out, segment{text: formats[c.ToolFormat].write(t.calls, t.content != "", callsBefore), show: (*outward).say})
	}
	for i, made := range t.calls {
		open := "<tool_call>\n{\"name\": \""
		if t.content != "" || i > 0 {
			open = "\n" + open
		}
		name := func(m *outward, _ string) {
			call := toolCall{Index: &i, ID: made.id, Type: "function"}
			call.Function.Name = made.name
			m.ToolCalls = append(m.ToolCalls, call)
		}
		arguments := func(m *outward, text string) {
			if len(m.ToolCalls) == 0 {
				m.ToolCalls = []toolCall{{Index: &i}}
			}
			m.ToolCalls[len(m.ToolCalls)-1].Function.Arguments += text
		}
		out = append(out,
			segment{text: open}, segment{text: made.name, show: name, atomic: true},
			segment{text: "\", \"arguments\": "}, segment{text: made.args, show: arguments},
			segment{text: "}\n</tool_call>"})
	}
	return out
}

// say adds to the content.
func (m *outward) say(text string) {
	said, _ := m.Content.(string)
	m.Content = said + text
}

// think adds reasoning to one of the fields that servers use for it.
func (c *Config) think(m *outward, text string) {
	switch c.ReasoningAs {
	case ReasoningDetails:
		m.Details = []detail{{Type: "reasoning.text", Text: m.Reasoning + text}}
		m.Reasoning += text
	case ReasoningPlain:
		m.Reasoning += text
	default:
		m.ReasoningContent += text
	}
}

// whole is all that is written.
func whole(segments []segment) string {
	var b strings.Builder
	for _, part := range segments {
		b.WriteString(part.text)
	}
	return b.String()
}

// upTo is the first bytes of the segments. A name that is cut is not seen, and its call with it.
func upTo(segments []segment, bytes int) []segment {
	for i, part := range segments {
		if len(part.text) <= bytes {
			bytes -= len(part.text)
			continue
		}
		part.text = part.text[:bytes]
		if part.atomic {
			part.show = nil
		}
		return append(slices.Clone(segments[:i]), part)
	}
	return segments
}

// cut is as much of the segments as has at most so many tokens.
func cut(segments []segment, limit int) []segment {
	return upTo(segments, len(start(whole(segments), limit)))
}
