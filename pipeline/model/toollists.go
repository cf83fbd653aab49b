package model

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
)

// toolLists caches encoded lists of tools. Thousands of requests with the same tools are in flight at once, and a list may be as
// large as the rest of its episode: it is checked, encoded and held once. It is safe for concurrent use.
type toolLists struct {
	mu      sync.Mutex // guards what follows
	hash    maphash.Hash
	written map[uint64]toolList // by the hash of the schemas
}

// maxToolLists bounds the memory; a distribution draws far fewer different ones.
const maxToolLists = 256

type toolList struct {
	names []string
	sent  json.RawMessage
}

// write returns one JSON list of the tools, from the cache if it has it.
func (l *toolLists) write(tools []json.RawMessage) (toolList, error) {
	if len(tools) == 0 {
		return toolList{}, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := hashTools(&l.hash, tools)
	if known, ok := l.written[key]; ok {
		return known, nil
	}
	list, err := encodeTools(tools)
	if err != nil {
		return toolList{}, err
	}
	if l.written == nil || len(l.written) >= maxToolLists {
		l.written = map[uint64]toolList{}
	}
	l.written[key] = list
	return list, nil
}

// hashTools hashes schemas, of which none has a byte that is 0.
func hashTools(h *maphash.Hash, tools []json.RawMessage) uint64 {
	h.Reset()
	for _, tool := range tools {
		h.Write(tool)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// encodeTools checks the schemas and leaves their bytes as they are.
func encodeTools(tools []json.RawMessage) (list toolList, err error) {
	for i, tool := range tools {
		if !json.Valid(tool) {
			return toolList{}, fmt.Errorf("tool schema %d is not JSON", i)
		}
		list.names = append(list.names, nameOf(tool))
		list.sent = append(append(list.sent, "[,"[min(i, 1)]), tool...)
	}
	list.sent = append(list.sent, ']')
	return list, nil
}
