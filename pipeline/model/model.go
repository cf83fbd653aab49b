// Package model speaks to a language model over the OpenAI chat-completions protocol.
//
// A Client sends one conversation and gives back one assistant message, streamed or not, with what the server said
// about it. It retries what is worth retrying, classifies what is not, and never lets the API key into an error.
// Everything below the go-openai client is in doer.go: what is sent and what came back is decided there, byte by byte.
package model

import (
	"context"
	"encoding/json"
	"time"

	"trajgen/pipeline/episode"
)

// Model completes conversations. Rollouts call it from many goroutines at once.
//
// The context covers the whole call with its retries and the pauses between them; when it ends, Complete returns at
// once. Every error is an *Error.
type Model interface {
	Complete(ctx context.Context, req Request) (Reply, error)
}

// Request is one conversation to be continued.
type Request struct {
	Asker
	State
	Messages []episode.Message
	Tools    []json.RawMessage // {"type":"function","function":{...}}; sent byte for byte, never changed afterwards

	Seed *int // left out when nil
	// Sampling overrides the settings of Config where it has any. Of several models it names the one to ask; a Client is
	// one model and does not look at the name.
	Sampling  episode.Sampling
	MaxTokens int // of the reply, before Sampling and Config; 0 leaves it to them

	// Clock runs while the request is under way, and not while it waits; it runs when there is a reply. Optional.
	Clock Clock
}

// Asker is the attempt of an episode for which a model is asked. On a tape are the requests that name one.
type Asker struct {
	Episode string // its id
	Attempt int
	Task    string
}

// Clock measures how long the model works.
type Clock interface {
	Start()
	Stop()
	// Back takes back what it ran since it was started: what failed was no work.
	Back()
}

// Reply is the assistant's turn and what the server said about it.
type Reply struct {
	Message      episode.Message
	FinishReason string // as the server wrote it: stop, tool_calls, length, ...
	Usage        episode.Usage
	Model        string // the name that the server gave
	RequestID    string
	Service      episode.Service
	Tokens       episode.Tokens  // empty where the server told none
	Endpoint     string          // the one of several that answered; empty when there is but one
	Retries      []episode.Fault // what earlier tries of this call died of
	Waited       time.Duration   // for permission to send, and between tries
	Retried      int             // those of Retries that count against the episode's; an outage's do not
	Fallback     string          // the model that answered instead of the first one
	Repairs      []string        // see episode.Turn
	Raw          string          // likewise
}
