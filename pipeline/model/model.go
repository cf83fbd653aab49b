// Package model speaks to a language model over the OpenAI chat-completions protocol.
//
// A Client sends one conversation and returns one assistant message, streamed or not, with the server's metadata. It retries
// errors that may pass, classifies the others, and keeps the API key out of errors. doer.go has everything below the go-openai
// client: the exact bytes that are sent and received.
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
	// Sampling overrides the settings of Config. Its model's name chooses one of several models (ByName); a Client ignores it.
	Sampling  episode.Sampling
	MaxTokens int // of the reply, before Sampling and Config; 0 leaves it to them

	// Clock runs while the request is in flight, and not while it waits; it still runs when Complete returns a reply. Optional.
	Clock Clock
}

// Asker is the attempt of an episode for which a model is asked. A tape records only requests that name an episode.
type Asker struct {
	Episode string // its id
	Attempt int
	Task    string
}

// AskerOf is the attempt that an episode is.
func AskerOf(ep *episode.Episode) Asker { return Asker{ep.ID, ep.Attempt, ep.Key.Task} }

// Clock measures how long the model works.
type Clock interface {
	Start()
	Stop()
	// Back takes back the time since Start, as the request failed.
	Back()
}

// Reply is the assistant's turn and the server's metadata.
type Reply struct {
	Message      episode.Message
	FinishReason string // as the server wrote it: stop, tool_calls, length, ...
	Usage        episode.Usage
	Model        string // the name that the server gave
	RequestID    string
	Service      episode.Service
	Tokens       episode.Tokens // empty if the server sends none
	Endpoint     string         // the endpoint that answered; empty with a single one
	Tries
	Fallback string   // the model that answered instead of the first one
	Repairs  []string // see episode.Turn
	Raw      string   // likewise
}

// Tries is what a call went through before its reply or its last error.
type Tries struct {
	Retries []episode.Fault // the errors of the tries before the last one
	Waited  time.Duration   // for permission to send, and between tries
	Retried int             // how many of Retries count against EpisodeRetries; those of an outage do not
}

// and adds the tries of a later call.
func (t Tries) and(later Tries) Tries {
	return Tries{append(t.Retries, later.Retries...), t.Waited + later.Waited, t.Retried + later.Retried}
}
