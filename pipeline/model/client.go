package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	openai "github.com/sashabaranov/go-openai"

	"trajgen/pipeline/episode"
)

// Client is a Model behind an OpenAI-compatible endpoint. It is safe for concurrent use; all its calls share one pool
// of connections.
type Client struct {
	cfg    Config
	api    *openai.Client
	doer   *doer
	redact *strings.Replacer
	openai bool // OpenAI itself, which knows max_tokens no more
}

var _ Model = (*Client)(nil)

// alias is the model name that go-openai sees. It has rules of its own for some names, which are wrong for a local
// model that is called alike; the doer puts the real name in.
const alias = "trajgen"

// Open makes a client. It sends nothing yet; Probe does.
func Open(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("model settings: %w", err)
	}
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, doer: newDoer(cfg), redact: cfg.secrets()}
	if u, err := url.Parse(cfg.BaseURL); err == nil {
		host := u.Hostname()
		c.openai = host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
	}
	lib := openai.DefaultConfig(cfg.APIKey)
	lib.BaseURL = cfg.BaseURL
	lib.HTTPClient = c.doer
	lib.EmptyMessagesLimit = math.MaxUint // keep-alive lines are no error; the idle timeout watches instead
	c.api = openai.NewClientWithConfig(lib)
	return c, nil
}

// Close gives the idle connections back.
func (c *Client) Close() error {
	c.doer.http.CloseIdleConnections()
	return nil
}

// Complete asks for the next assistant message and tries again where that may help.
func (c *Client) Complete(ctx context.Context, req Request) (Reply, error) {
	sent, err := c.encode(req)
	if err != nil {
		return Reply{}, &Error{Class: ClassBadRequest, Message: err.Error(), cause: err}
	}
	pauses := backoff.ExponentialBackOff{
		InitialInterval: c.cfg.RetryBase, MaxInterval: c.cfg.RetryMax, Multiplier: 2, RandomizationFactor: 0.5,
	}
	pauses.Reset()
	var retries []episode.Fault
	for {
		reply, failed := c.try(ctx, req, sent)
		if failed == nil {
			reply.Retries = retries
			return reply, nil
		}
		failed.Retries = retries
		if !failed.retryable() || len(retries) >= c.cfg.MaxRetries {
			return Reply{}, failed
		}
		pause := pauses.NextBackOff()
		if wish := min(failed.RetryAfter, MaxRetryAfter); wish > 0 {
			pause = max(pause, apart(wish))
		}
		c.cfg.Logger.DebugContext(ctx, "model call is tried again", "episode", req.Episode, "class", failed.Class,
			"status", failed.Status, "message", failed.Message, "try", len(retries)+1, "pause", pause)
		retries = append(retries, failed.Fault())
		if !wait(ctx, pause) {
			cause := context.Cause(ctx)
			return Reply{}, &Error{Class: ClassCancelled, Message: c.redact.Replace(cause.Error()), Retries: retries, cause: cause}
		}
	}
}

// wait pauses and tells whether the context let it.
func wait(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// try sends the request once.
func (c *Client) try(ctx context.Context, req Request, sent exchange) (Reply, *Error) {
	if ctx.Err() != nil { // net/http may notice only after it has sent the request
		return Reply{}, c.failure(ctx, ctx, &sent, context.Cause(ctx))
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	deadline := time.AfterFunc(c.cfg.Timeout, func() { cancel(errTimeout) })
	defer deadline.Stop()

	x := &sent
	x.cancel = cancel
	reply, err := c.send(context.WithValue(within, exchangeKey{}, x), req, x)
	if err != nil {
		return Reply{}, c.failure(ctx, within, x, err)
	}
	reply.RequestID = cmp.Or(requestID(x.header), reply.RequestID)
	return reply, nil
}

// errNoReply stands in where go-openai finds nothing wrong with a redirect.
var errNoReply = errors.New("the answer is no reply")

// send runs one exchange and reads the reply from the raw bytes that the doer kept. What go-openai makes of them
// counts only when nothing came: it refuses replies that are fine and takes some for whole that are not.
func (c *Client) send(ctx context.Context, req Request, x *exchange) (Reply, error) {
	call := openai.ChatCompletionRequest{Model: alias, Seed: req.Seed}
	if limit := cmp.Or(req.MaxTokens, c.cfg.MaxTokens); c.openai {
		call.MaxCompletionTokens = limit
	} else {
		call.MaxTokens = limit
	}
	if !c.cfg.Stream {
		_, err := c.api.CreateChatCompletion(ctx, call)
		switch {
		case x.broken != nil:
			return Reply{}, x.broken
		case x.status/100 != 2:
			return Reply{}, cmp.Or(err, errNoReply)
		}
		return decodePlain(x.raw.Bytes(), len(req.Messages))
	}
	call.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	stream, err := c.api.CreateChatCompletionStream(ctx, call)
	if err != nil {
		return Reply{}, err
	}
	for err == nil {
		_, err = stream.RecvRaw()
	}
	stream.Close()
	if x.reply == nil { // a redirect, which go-openai takes for a stream
		return Reply{}, cmp.Or(err, errNoReply)
	}
	reply, problem := x.reply.reply(len(req.Messages))
	if problem == errCut && x.broken != nil {
		return Reply{}, x.broken
	}
	return reply, problem
}
