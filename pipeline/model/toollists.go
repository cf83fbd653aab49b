package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
)

// toolLists caches encoded lists of tools. Thousands of requests with the same tools are in flight at once, and a list may be as
// large as the rest of its episode: it is checked, encoded and held once. It is safe for concurrent use.
type toolLists struct {
	mu      sync.Mutex // guards what follows
	written map[toolListKey]toolList
}

// maxToolLists bounds the memory; a distribution draws far fewer different ones.
const maxToolLists = 256

// toolListKey identifies a list by the addresses of its schemas, without reading them.
type toolListKey struct {
	first, last *byte
	length      int
}

type toolList struct {
	tools []json.RawMessage // keeps the memory that the key points to from being reused
	names []string
	sent  json.RawMessage
}

// write returns one JSON list of the tools, from the cache if it has it.
func (l *toolLists) write(tools []json.RawMessage) (toolList, error) {
	if len(tools) == 0 {
		return toolList{}, nil
	}
	first, last := tools[0], tools[len(tools)-1]
	if len(first) == 0 || len(last) == 0 {
		_, err := joinTools(tools) // fails
		return toolList{}, err
	}
	key := toolListKey{&first[0], &last[0], len(tools)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.written[key]; known.of(tools) {
		return known, nil
	}
	sent, err := joinTools(tools)
	if err != nil {
		return toolList{}, err
	}
	if l.written == nil || len(l.written) >= maxToolLists {
		l.written = map[toolListKey]toolList{}
	}
	list := toolList{tools: slices.Clone(tools), sent: sent}
	for _, tool := range tools {
		list.names = append(list.names, nameOf(tool))
	}
	l.written[key] = list
	return list, nil
}

// of reports whether the list was made of the same schemas.
func (l toolList) of(tools []json.RawMessage) bool {
	if len(l.tools) != len(tools) {
		return false
	}
	for i, tool := range tools {
		if len(tool) == 0 || len(tool) != len(l.tools[i]) || &tool[0] != &l.tools[i][0] {
			return false
		}
	}
	return true
}

// joinTools checks the schemas and leaves their bytes as they are.
func joinTools(tools []json.RawMessage) (json.RawMessage, error) {
	size := 2
	for i, tool := range tools {
		if !json.Valid(tool) {
			return nil, fmt.Errorf("tool schema %d is not JSON", i)
		}
		size += len(tool) + 1
	}
	var b bytes.Buffer
	b.Grow(size)
	b.WriteByte('[')
	for i, tool := range tools {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(tool)
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}
