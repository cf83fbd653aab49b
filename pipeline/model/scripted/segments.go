package scripted

import (
	"slices"
	"strings"
)

// part says where a piece of what the model writes is seen by the client.
type part int

const (
	unseen part = iota // tags, and all that the server swallows
	reasoningPart
	contentPart
	namePart
	argsPart
)

// segment is a piece of what the model writes: the tokens of a reply are those of its segments, one behind the other.
type segment struct {
	part part
	call int // the number of the call, of a name or arguments
	text string
}

// write puts a turn as the model writes it, in the format of Config.ToolFormat. callsBefore is the number of calls in
// the conversation so far.
func (c *Config) write(t turn, callsBefore int) []segment {
	var out []segment
	if t.reasoning != "" {
		tag, thought := unseen, reasoningPart
		if c.ReasoningAs == ReasoningTags {
			tag, thought = contentPart, contentPart
		}
		out = append(out, segment{part: tag, text: "<think>\n"}, segment{part: thought, text: t.reasoning},
			segment{part: tag, text: "\n</think>\n\n"})
	}
	if t.content != "" {
		out = append(out, segment{part: contentPart, text: t.content})
	}
	if len(t.calls) > 0 && c.ToolFormat != "" {
		return append(out, segment{part: contentPart, text: formats[c.ToolFormat].write(t.calls, t.content != "", callsBefore)})
	}
	for i, c := range t.calls {
		open := "<tool_call>\n{\"name\": \""
		if t.content != "" || i > 0 {
			open = "\n" + open
		}
		out = append(out,
			segment{text: open}, segment{part: namePart, call: i, text: c.name},
			segment{text: "\", \"arguments\": "}, segment{part: argsPart, call: i, text: c.args},
			segment{text: "}\n</tool_call>"})
	}
	return out
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
		if part.part == namePart {
			part.part = unseen
		}
		return append(slices.Clone(segments[:i]), part)
	}
	return segments
}

// cut is as much of the segments as has at most so many tokens.
func cut(segments []segment, limit int) []segment {
	return upTo(segments, len(start(whole(segments), limit)))
}

// stopAt ends the segments with the first of the stop texts that is in them. The text itself is written and not seen,
// as vLLM does it.
func stopAt(segments []segment, stops []string) (cutOff []segment, stopped *string) {
	text := whole(segments)
	at := len(text)
	for _, stop := range stops {
		if found := strings.Index(text, stop); found >= 0 && found < at {
			at, stopped = found, &stop
		}
	}
	if stopped == nil {
		return segments, nil
	}
	return append(upTo(segments, at), segment{text: *stopped}), stopped
}

// seen is the turn that a client makes of the segments.
func seen(segments []segment, calls []call) turn {
	var t turn
	for _, part := range segments {
		switch part.part {
		case reasoningPart:
			t.reasoning += part.text
		case contentPart:
			t.content += part.text
		case namePart:
			t.calls = append(t.calls, call{id: calls[part.call].id, name: calls[part.call].name})
		case argsPart:
			t.calls[part.call].args = part.text
		}
	}
	return t
}
