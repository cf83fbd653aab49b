package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	openai "github.com/sashabaranov/go-openai"

	"trajgen/pipeline/model/gate"
)

// Client is a Model behind an OpenAI-compatible endpoint. It is safe for concurrent use; all its calls share one pool
// of connections.
type Client struct {
	cfg      Config
	doer     *doer
	requests *writer
	replies  *reader

	window   atomic.Int64 // as the server says; 0 when it does not
	prefixes prefixes     // for the meter

	endpoints []endpoint
	gates     *gate.Set // of the endpoints, in their order
	breaker   *breaker
	throttle  *throttle
}

var _ Model = (*Client)(nil)

// alias is the model name that go-openai sees. go-openai has rules for some names, which are wrong for a local model of the
// same name; the doer puts the real name in.
const alias = "trajgen"

// Open makes a client. It sends nothing yet; Probe does.
func Open(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("model settings: %w", err)
	}
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, doer: newDoer(cfg), replies: &reader{cfg: cfg}}
	c.requests = &writer{cfg: cfg, server: serverAt(cfg.Endpoints)}
	c.endpoints, c.gates = openEndpoints(cfg, c.doer)
	c.breaker, c.throttle = newBreaker(cfg, c.where(), c.alive), newThrottle(cfg.RetryShare, cfg.Concurrency, cfg.Now())
	return c, nil
}

// Close closes the idle connections.
func (c *Client) Close() error {
	c.doer.http.CloseIdleConnections()
	return nil
}

// Complete asks for the next assistant message and tries again where that may help.
func (c *Client) Complete(ctx context.Context, req Request) (Reply, error) {
	reply, failed := c.complete(ctx, &req, c.breaker, true)
	if failed != nil {
		return Reply{}, mend(failed)
	}
	return *reply, nil
}

// complete is Complete. A call without a breaker ignores outages; one without patience fails in them.
//
// Thousands of goroutines wait below it, so requests and replies go by pointer: copies would fill each stack.
func (c *Client) complete(ctx context.Context, req *Request, b *breaker, patient bool) (*Reply, *Error) {
	if req.Clock != nil { // it runs while a request is under way
		req.Clock.Stop()
	}
	if !patient {
		if failed := b.refuses(); failed != nil {
			return nil, failed
		}
	}
	under := &call{Client: c, req: *req, breaker: b, patient: patient, began: c.cfg.Now(), at: c.home(req.Endpoint)}
	if err := c.requests.encode(req, &under.sent); err != nil {
		return nil, &Error{Class: ClassBadRequest, Message: err.Error(), cause: err}
	}
	return under.complete(ctx)
}

// errNoReply is the error of a redirect, which go-openai does not report.
var errNoReply = errors.New("the answer is not a reply")

// send runs one exchange. The reply is read from the raw bytes that the doer kept. The result of go-openai counts only when
// there are none, as it refuses some good replies and accepts some incomplete ones.
func (t *try) send(ctx context.Context) error {
	x := &t.x
	call := t.requests.asks(&t.req, x)
	if !t.cfg.Stream {
		_, err := x.api.CreateChatCompletion(ctx, *call)
		switch {
		case x.broken != nil:
			return x.broken
		case x.status/100 != 2:
			return cmp.Or(err, errNoReply)
		}
		return nil
	}
	stream, err := x.api.CreateChatCompletionStream(ctx, *call)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = stream.RecvRaw()
	}
	stream.Close()
	if x.reply == nil { // a redirect, which go-openai takes for a stream
		return cmp.Or(err, errNoReply)
	}
	return nil
}

// asks is the part of a request that go-openai writes.
func (w *writer) asks(req *Request, x *exchange) *openai.ChatCompletionRequest {
	call := &openai.ChatCompletionRequest{Model: alias}
	if w.cfg.Replay == nil { // otherwise the tape has set it
		x.seedless = w.unseeded.Load()
	}
	if x.seedless = x.seedless || req.Seed == nil || !w.cfg.Seeded(); !x.seedless {
		call.Seed = new(*req.Seed + x.resampled) // the same seed would give the same reply
	}
	if limit := w.limit(*req); limit > 0 {
		if x.limitField == "" { // otherwise the tape has set it
			x.limitField = w.limitField()
		}
		if x.limitField == LimitCompletion {
			call.MaxCompletionTokens = limit
		} else {
			call.MaxTokens = limit //lint:ignore SA1019 most servers know no other name
		}
	}
	if w.cfg.Stream {
		call.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return call
}
