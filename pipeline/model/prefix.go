package model

import (
	"hash/maphash"
	"sync"
)

// prefixes remembers, for each set of tools and system message, the shortest prompt of a first request that had them, in tokens.
// It bounds the tokens of that common prefix: without it, the worst case of each episode's first request would be a token for
// every byte of its tools.
type prefixes struct {
	seed maphash.Seed

	mu     sync.Mutex
	tokens map[uint64]int
}

// maxPrefixes bounds the memory; sets that a distribution draws often come early.
const maxPrefixes = 4096

// key identifies the common prefix, and messages is how many messages belong to it.
func (p *prefixes) key(req Request) (key uint64, messages int) {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, tool := range req.Tools {
		h.Write(tool)
		h.WriteByte(0)
	}
	if len(req.Messages) > 0 && req.Messages[0].Role == "system" {
		h.WriteString(req.Messages[0].Content)
		messages = 1
	}
	return h.Sum64(), messages
}

// known is the bound for the prefix of a first request.
func (p *prefixes) known(req Request) Known {
	key, messages := p.key(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	return Known{Messages: messages, Tokens: p.tokens[key]}
}

// learn takes the server's count of a first request.
func (p *prefixes) learn(req Request, prompt int) {
	if prompt <= 0 {
		return
	}
	key, _ := p.key(req)
	p.mu.Lock()
	defer p.mu.Unlock()
	if shortest, ok := p.tokens[key]; ok && shortest <= prompt || !ok && len(p.tokens) >= maxPrefixes {
		return
	}
	p.tokens[key] = prompt
}
