package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"

	"trajgen/pipeline/episode"
)

// Meter decides whether a try is paid for. It is called from many goroutines: Reserve before each try, retries included, and
// the receipt after it.
type Meter interface {
	// Reserve waits until the worst case is covered. After an error the try is not made, and unless the context ended, the call
	// fails as fatal.
	Reserve(ctx context.Context, worst Bound) (Receipt, error)
}

// Receipt is what a Meter has set aside for a try. Exactly one of its methods is called, once.
type Receipt interface {
	// Settle takes the usage of the try, and the name of the model that answered, or "". Usage that is not reported may be
	// anything up to the worst case.
	Settle(served string, u episode.Usage)
	// Void says that the try cannot have been billed.
	Void()
}

// Bound is the most that one try can use.
type Bound struct {
	Model      string
	Turn       int // see Request
	Prompt     int // tokens
	Completion int // tokens; 0 when the reply has no bound
	Made       episode.Made
}

// pay waits until the try is paid for.
func (t *try) pay(ctx context.Context) (end func(), failed *Error) {
	if t.cfg.Meter == nil {
		return nil, nil
	}
	req, first := t.req, t.req.Known.Tokens == 0
	if first {
		req.Known = t.prefixes.known(req)
	}
	receipt, err := t.cfg.Meter.Reserve(ctx, t.bound(req, &t.x))
	if err != nil {
		return nil, t.unpaid(ctx, err)
	}
	return func() {
		served, used, billed := t.billed()
		if billed {
			receipt.Settle(served, used)
			if first && used.Reported {
				t.prefixes.learn(req, used.Prompt)
			}
		} else {
			receipt.Void()
		}
	}, nil
}

// unpaid is the error of a try that was not made.
func (t *try) unpaid(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		return t.doer.failure(ctx, ctx, &t.x, err)
	}
	return &Error{Class: ClassBudget, Message: oneLine(err.Error()), Fatal: true, cause: err}
}

// bound is the most that a try can use. It counts other fields of the request as text, as a server may put them in the prompt.
func (c *Client) bound(req Request, x *exchange) Bound {
	b := Bound{Model: c.cfg.Name, Turn: req.Turn, Prompt: PromptBound(req), Completion: c.replyBound(req, x)}
	for name, raw := range x.fields {
		b.Prompt += len(name) + len(raw)
	}
	return b
}

// replyBound is the most tokens of a reply: the request's limit, or else the model's window.
func (c *Client) replyBound(req Request, x *exchange) int {
	most := c.requests.limit(req)
	if raw, given := x.fields[c.requests.limitField()]; given && tokensIn(raw) == 0 { // the extra field replaces the setting
		most = 0
	}
	for name := range limitFields {
		most = max(most, tokensIn(x.fields[name]))
	}
	return cmp.Or(most, c.Window())
}

// tokensIn is the limit that a field sets, or 0.
func tokensIn(raw json.RawMessage) int {
	var n int
	if json.Unmarshal(raw, &n) != nil {
		return 0
	}
	return max(0, n)
}

// billed reports whether a try may have been billed, and for what. Servers bill all tokens that they have generated: a try that
// was cancelled, or whose reply was cut, counts as the worst case unless its usage came. An error is not billed, except one
// that says that a proxy gave up waiting.
func (t *try) billed() (served string, u episode.Usage, billed bool) {
	x := &t.x
	switch {
	case !t.asked:
		return "", u, false
	case t.reply.Message.Role != "":
		return t.reply.Model, t.reply.Usage, true
	case x.status >= 300:
		return "", u, slices.Contains([]int{http.StatusRequestTimeout, http.StatusBadGateway, http.StatusGatewayTimeout, 524}, x.status)
	case x.status == 0:
		return "", u, !neverSent(t.failed)
	case x.reply != nil: // the usage in a stream that was cut may be incomplete
		if d := &x.reply.draft; x.reply.done || d.finish != "" {
			return d.model, d.usage, true
		}
	case x.broken == nil:
		var body wireReply
		if json.Unmarshal(x.raw.Bytes(), &body) == nil {
			u, _ = readUsage(body.Usage)
			return text(body.Model), u, true
		}
	}
	return "", u, true
}

// neverSent reports whether an error came before there was a connection.
func neverSent(failed *Error) bool {
	var network *net.OpError
	return failed != nil && errors.As(failed.cause, &network) && (network.Op == "dial" || network.Op == "proxyconnect")
}
