package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"trajgen/pipeline/episode"
)

// Written is the encoding of a conversation in its last request, so that the next request only encodes the new messages. The
// zero value is empty. It belongs to one conversation, whose requests follow each other.
type Written struct {
	by   *Client           // encodings differ between clients
	of   []episode.Message // the messages in text
	text []byte            // a JSON list without its closing bracket; it only grows, as earlier requests share its memory
}

// write returns a JSON list of messages without the bracket at its end.
func (w *Written) write(c *Client, messages []episode.Message) ([]byte, error) {
	common := 0
	if w.by == c {
		for common < min(len(w.of), len(messages)) && same(&w.of[common], &messages[common]) {
			common++
		}
	}
	if common < len(w.of) || common == 0 { // another conversation, or one that was shortened
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

// same compares messages. Unchanged strings share their memory, which makes that cheap.
func same(a, b *episode.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.Reasoning == b.Reasoning && a.ToolCallID == b.ToolCallID && a.Name == b.Name &&
		slices.Equal(a.Calls, b.Calls) && bytes.Equal(a.ReasoningDetails, b.ReasoningDetails)
}
