package model

import (
	"encoding/json"

	"trajgen/pipeline/episode"
)

// State is what one request of a conversation passes to the next. The zero value begins a conversation.
type State struct {
	// Turn is the number of turns so far: in the queue, an episode in progress goes before a new one.
	Turn int
	// Endpoint is the endpoint of the last turn; its cache holds the conversation's prefix.
	Endpoint string
	// Fallback is Reply.Fallback of the last turn: the episode stays with the model that answered.
	Fallback string
	// Retried is the sum of Reply.Retried of the earlier turns.
	Retried int
	// Known is the server's token count of the conversation's prefix. A caller that asks another model clears it.
	Known Known
}

// Conversation is what the requests of an episode to its model have in common. It belongs to one goroutine.
type Conversation struct {
	Counter  Counter
	asker    Asker
	sampling episode.Sampling
	seed     func(turn int) int
	state    State
}

// Begin begins a conversation. seed gives the seed of each turn's request.
func Begin(asker Asker, sampling episode.Sampling, seed func(turn int) int) *Conversation {
	return &Conversation{asker: asker, sampling: sampling, seed: seed}
}

// Next is the request for the next turn, after the turns that Take has added.
func (c *Conversation) Next(messages []episode.Message, tools []json.RawMessage) Request {
	seed := c.seed(c.state.Turn)
	state := c.state
	state.Known = c.Counter.Known()
	return Request{Asker: c.asker, State: state, Messages: messages, Tools: tools, Seed: &seed, Sampling: c.sampling}
}

// Take ends a turn with the reply to a request of Next.
func (c *Conversation) Take(req *Request, reply *Reply) {
	c.state.Turn++
	c.state.Endpoint, c.state.Fallback = reply.Endpoint, reply.Fallback
	c.state.Retried += reply.Retried
	if reply.Usage.Reported {
		c.Counter.Learn(req.Messages, req.Tools, reply.Usage.Prompt)
	}
}

// Endpoint is the endpoint of the last turn.
func (c *Conversation) Endpoint() string { return c.state.Endpoint }
