// Package model speaks to a language model over the OpenAI chat-completions protocol.
//
// A Client sends one conversation and gives back one assistant message, streamed or not, with what the server said
// about it. It retries what is worth retrying, classifies what is not, and never lets the API key into an error.
// Everything below the go-openai client is in doer.go: what is sent and what came back is decided there, byte by byte.
package model

import (
	"context"
	"encoding/json"

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
	Messages []episode.Message
	Tools    []json.RawMessage // {"type":"function","function":{...}}; sent byte for byte

	Seed      *int // left out when nil
	MaxTokens int  // of the reply; 0 means Config.MaxTokens

	// Episode and Task are for correlation; they are sent only with Config.TraceHeaders.
	Episode, Task string
}

// Reply is the assistant's turn and what the server said about it.
type Reply struct {
	Message      episode.Message
	FinishReason string // as the server wrote it: stop, tool_calls, length, ...
	Usage        episode.Usage
	Model        string // the name that the server gave
	RequestID    string
	Retries      []episode.Fault // what earlier tries of this call died of
}
