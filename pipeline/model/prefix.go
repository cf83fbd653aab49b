package model

import (
	"hash/maphash"
	"sync"
)

// prefixes remembers how long the prompts were of first requests that had the same tools and the same system message.
// What they had in common is no longer than the shortest of them: without that, the worst case of each episode's first
// request would be a token for every byte of its tools.
type prefixes struct {
	seed maphash.Seed

	mu     sync.Mutex
	tokens map[uint64]int
}

// maxPrefixes bounds the memory; what a distribution draws over and over is there early.
const maxPrefixes = 4096

// key stands for what requests have in common, and messages is how many of their messages that are.
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

// known is what is known of the beginning of a first request.
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
