package model

import (
	"hash/maphash"
	"sync"
)

// prefixes remembers, for each set of tools and system message, the shortest prompt of a first request that had them, in tokens.
// It bounds the tokens of that common prefix: without it, the worst case of each episode's first request would be a token for
// every byte of its tools. The zero value is empty.
type prefixes struct {
	mu     sync.Mutex // guards what follows
	hash   maphash.Hash
	tokens map[uint64]int
}

// maxPrefixes bounds the memory; sets that a distribution draws often come early.
const maxPrefixes = 4096

// key identifies the common prefix, and messages is how many messages belong to it. The caller holds mu.
func (p *prefixes) key(req Request) (key uint64, messages int) {
	key = hashTools(&p.hash, req.Tools)
	if len(req.Messages) > 0 && req.Messages[0].Role == "system" {
		p.hash.WriteString(req.Messages[0].Content) // a system message has no images
		return p.hash.Sum64(), 1
	}
	return key, 0
}

// known is the bound for the prefix of a first request.
func (p *prefixes) known(req Request) Known {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, messages := p.key(req)
	return Known{Messages: messages, Tokens: p.tokens[key]}
}

// learn takes the server's count of a first request.
func (p *prefixes) learn(req Request, prompt int) {
	if prompt <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key, _ := p.key(req)
	if shortest, ok := p.tokens[key]; ok && shortest <= prompt || !ok && len(p.tokens) >= maxPrefixes {
		return
	}
	if p.tokens == nil {
		p.tokens = map[uint64]int{}
	}
	p.tokens[key] = prompt
}
