package model

import (
	"encoding/json"

	"trajgen/pipeline/episode"
)

// State is what the requests of one conversation hand on to each other. The zero value begins one.
type State struct {
	// Turn is the number of turns so far: an episode in progress goes before a new one where requests wait.
	Turn int
	// Endpoint is the one that the last turn was played at; its cache holds the conversation's beginning.
	Endpoint string
	// Fallback is that of the reply in the last turn: the episode stays with who gave it.
	Fallback string
	// Retried is the sum of what the episode's earlier replies counted.
	Retried int
	// Known is what the model's server has counted of the conversation's beginning. Who asks another model clears it.
	Known Known
	// Written is what the earlier requests were written as, for the next one to go on from. Optional.
	Written *Written
}

// Conversation is what the requests of an episode to its model have in common. It belongs to one goroutine.
type Conversation struct {
	Counter  Counter
	asker    Asker
	sampling episode.Sampling
	seed     func(turn int) int
	state    State
	written  Written
}

// Begin begins a conversation. seed gives the seed of each turn's request.
func Begin(asker Asker, sampling episode.Sampling, seed func(turn int) int) *Conversation {
	return &Conversation{asker: asker, sampling: sampling, seed: seed}
}

// Next is the request for the next turn, which goes on from the turns that were taken.
func (c *Conversation) Next(messages []episode.Message, tools []json.RawMessage) Request {
	seed := c.seed(c.state.Turn)
	state := c.state
	state.Known, state.Written = c.Counter.Known(), &c.written
	return Request{Asker: c.asker, State: state, Messages: messages, Tools: tools, Seed: &seed, Sampling: c.sampling}
}

// Take makes a turn of a reply to a request of Next.
func (c *Conversation) Take(req *Request, reply *Reply) {
	c.state.Turn++
	c.state.Endpoint, c.state.Fallback = reply.Endpoint, reply.Fallback
	c.state.Retried += reply.Retried
	if reply.Usage.Reported {
		c.Counter.Learn(req.Messages, req.Tools, reply.Usage.Prompt)
	}
}

// Endpoint is where the last turn was played.
func (c *Conversation) Endpoint() string { return c.state.Endpoint }
