package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"trajgen/pipeline/episode"
)

// Written is how a conversation was written into its last request, so that the next one writes only what came since. The
// zero value has nothing. It belongs to one conversation, whose requests follow each other.
type Written struct {
	by   *Client           // each writes in its own way
	of   []episode.Message // that text holds
	text []byte            // of a list that is still open; what is behind its end may be written, what is in it never
}

// write returns a JSON list of messages without the bracket at its end.
func (w *Written) write(c *Client, messages []episode.Message) ([]byte, error) {
	common := 0
	if w.by == c {
		for common < min(len(w.of), len(messages)) && same(&w.of[common], &messages[common]) {
			common++
		}
	}
	if common < len(w.of) || common == 0 { // another conversation, or it was cut
		common, w.of, w.text = 0, nil, nil
	}
	w.by = c
	more := writing.Get().(*bytes.Buffer)
	defer writing.Put(more)
	more.Reset()
	enc := json.NewEncoder(more)
	enc.SetEscapeHTML(false) // "<" as \u003c means the same and costs six times as much
	for i := range messages[common:] {
		m := &messages[common+i]
		if common+i == 0 {
			more.WriteByte('[')
		} else {
			more.WriteByte(',')
		}
		if err := enc.Encode(c.wire(m)); err != nil {
			return nil, fmt.Errorf("encode messages: %w", err)
		}
		more.Truncate(more.Len() - len("\n"))
	}
	w.text = append(w.text, more.Bytes()...)
	w.of = append(w.of, messages[common:]...)
	return w.text, nil
}

var writing = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// same compares messages. What did not change is the same string in memory, which costs nothing to see.
func same(a, b *episode.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning && a.ToolCallID == b.ToolCallID && a.Name == b.Name &&
		slices.Equal(a.Calls, b.Calls) && bytes.Equal(a.ReasoningDetails, b.ReasoningDetails)
}
