package scripted

import (
	"slices"
	"strings"
)

// part tells where a piece of what the model writes is seen by the client.
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
func (s *Server) write(t turn, callsBefore int) []segment {
	var out []segment
	if t.reasoning != "" {
		tag := unseen
		if s.cfg.ReasoningAs == ReasoningTags {
			tag = contentPart
		}
		out = append(out, segment{part: tag, text: "<think>\n"})
		out = append(out, segment{part: max(tag, reasoningPart), text: t.reasoning})
		out = append(out, segment{part: tag, text: "\n</think>\n\n"})
	}
	if t.content != "" {
		out = append(out, segment{part: contentPart, text: t.content})
	}
	if s.cfg.ToolFormat != "" {
		if len(t.calls) > 0 {
			out = append(out, segment{part: contentPart, text: formats[s.cfg.ToolFormat](t.calls, t.content != "", callsBefore)})
		}
		return out
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

// size is the number of tokens in the segments.
func size(segments []segment) int {
	n := 0
	for _, part := range segments {
		n += countTokens(part.text)
	}
	return n
}

// cut is as much of the segments as has at most so many tokens. A name that is cut is not seen, and its call with it.
func cut(segments []segment, limit int) []segment {
	for i, part := range segments {
		n := countTokens(part.text)
		if n <= limit {
			limit -= n
			continue
		}
		short := slices.Clone(segments[:i])
		part.text = start(part.text, limit)
		if part.part == namePart {
			part.part = unseen
		}
		return append(short, part)
	}
	return segments
}

// stopAt ends the segments with the first of the stop texts that is in them. The text itself is written and not seen,
// as vLLM does it.
func stopAt(segments []segment, stops []string) (cutOff []segment, stopped string, ok bool) {
	var whole strings.Builder
	for _, part := range segments {
		whole.WriteString(part.text)
	}
	at := -1
	for _, stop := range stops {
		if found := strings.Index(whole.String(), stop); found >= 0 && (at < 0 || found < at) {
			at, stopped = found, stop
		}
	}
	if at < 0 {
		return segments, "", false
	}
	for _, part := range segments {
		if len(part.text) <= at {
			at -= len(part.text)
			cutOff = append(cutOff, part)
			continue
		}
		part.text = part.text[:at]
		if part.part == namePart {
			part.part = unseen
		}
		return append(cutOff, part, segment{text: stopped}), stopped, true
	}
	return segments, "", false
}

// seen is the turn that a client makes of the segments.
func seen(segments []segment, calls []call) turn {
	var t turn
	var content, reasoning strings.Builder
	for _, part := range segments {
		switch part.part {
		case reasoningPart:
			reasoning.WriteString(part.text)
		case contentPart:
			content.WriteString(part.text)
		case namePart:
			c := calls[part.call]
			c.args = ""
			t.calls = append(t.calls, c)
		case argsPart:
			t.calls[part.call].args = part.text
		}
	}
	t.content, t.reasoning = content.String(), reasoning.String()
	return t
}
