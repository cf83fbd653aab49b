package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"trajgen/pipeline/episode"
)

// probeTimeout bounds the listing of models, and an answer of one token.
const probeTimeout = 30 * time.Second

// Probe checks before a run that every endpoint answers, accepts the key and has the model. It costs nothing when the server
// lists the model, and one token otherwise. Every error is an *Error whose message says what to do.
func (c *Client) Probe(ctx context.Context) error {
	if c.cfg.Replay != nil {
		return nil
	}
	for i := range c.endpoints {
		if failed := c.probe(ctx, i); failed != nil {
			return failed
		}
	}
	return nil
}

// probe checks one endpoint.
func (c *Client) probe(ctx context.Context, i int) *Error {
	base := c.cfg.Endpoints[i]
	names, failed := c.list(ctx, c.endpoints[i])
	if failed != nil {
		switch failed.Class {
		case ClassConnection, ClassTimeout:
			failed.Message = fmt.Sprintf("cannot reach %s: %s: is the server running, and is the base URL right?", base, rootText(failed))
			return failed
		case ClassAuth, ClassQuota:
			return c.advise(failed, base, nil)
		case ClassCancelled:
			return failed
		}
	}
	if slices.Contains(names, c.cfg.Name) {
		return nil
	}
	// The model may exist all the same: there are aliases, gateways with hundreds of models, and servers without a list.
	_, failed = c.complete(ctx, c.yes(i), nil, true)
	if failed == nil {
		return nil
	}
	// Reasoning models refuse a limit of one token, which shows that they exist.
	if failed.Class == ClassBadRequest && strings.Contains(failed.Message, "max_tokens") {
		return nil
	}
	return c.advise(failed, base, names)
}

// yes is a request for a single token. Each is different, so that no cache answers it.
func (c *Client) yes(i int) *Request {
	text := fmt.Sprintf("Say yes to %d.", c.cfg.Now().UnixNano())
	return &Request{Messages: []episode.Message{{Role: "user", Content: text}}, MaxTokens: 1, State: State{Endpoint: c.endpoints[i].name}}
}

// alive finds out whether at least one endpoint answers a request outside any conversation. The list of models would not show
// that: gateways list models whose servers are gone, and some servers have no list. The error is that of the last endpoint.
func (c *Client) alive(ctx context.Context) (failed *Error) {
	for i := range c.endpoints {
		if failed = c.tryYes(ctx, i); !failed.ofOutage() {
			return nil
		}
	}
	return failed
}

// ofOutage reports whether an outage may have caused the error.
func (e *Error) ofOutage() bool { return e != nil && policies[e.Class].outage }

// tryYes asks once, bypassing the gate, where thousands of requests may wait for an endpoint that does not answer.
func (c *Client) tryYes(ctx context.Context, i int) *Error {
	t := &try{call: &call{Client: c, req: *c.yes(i)}}
	if err := c.requests.encode(&t.req, &t.x); err != nil {
		return nil // not the endpoint's fault
	}
	paid, failed := t.pay(ctx)
	if failed != nil {
		return failed
	}
	if paid != nil {
		defer paid()
	}
	t.x.api, t.x.timeout = c.endpoints[i].client(&t.x), min(c.cfg.Timeout, probeTimeout)
	t.failed = t.exchange(ctx)
	return t.failed
}

// mend adds advice to an error in the middle of a run that only the user can resolve.
func mend(e *Error) *Error {
	switch e.Class {
	case ClassAuth:
		e.Message += " (the server does not take the API key any more: is it still valid?)"
	case ClassQuota:
		e.Message += " (the account has no credit left, or has reached its limit)"
	}
	return e
}

// advise adds advice to an endpoint's error before a run.
func (c *Client) advise(e *Error, base string, names []string) *Error {
	switch e.Class {
	case ClassAuth:
		what := "the server wants another API key"
		if c.cfg.APIKey == "" {
			what = "the server wants an API key and none is set"
		}
		e.Message = fmt.Sprintf("%s at %s: %s (is the right environment variable named as its source?)",
			what, base, e.Message)
	case ClassQuota:
		e.Message = fmt.Sprintf("the account at %s has no credit left: %s", base, e.Message)
	case ClassModelNotFound:
		e.Message = fmt.Sprintf("the server at %s does not serve model %q: %s", base, c.cfg.Name, e.Message)
		if has := c.nearest(names); has != "" {
			e.Message += "; it has " + has
		} else {
			e.Message += "; it lists no models: is the base URL right? (most end in /v1)"
		}
	default:
		e.Message = fmt.Sprintf("a first request to %s for model %q: %s", base, c.cfg.Name, e.Message)
	}
	return e
}

// list asks for the models. It parses the body itself, as servers send types that go-openai's cannot hold.
func (c *Client) list(ctx context.Context, at endpoint) ([]string, *Error) {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x := &exchange{cancel: cancel, idle: c.cfg.IdleTimeout, timeout: min(c.cfg.Timeout, probeTimeout)}
	deadline := time.AfterFunc(x.timeout, func() { cancel(errTimeout) })
	defer deadline.Stop()
	_, err := at.client(x).ListModels(within)
	if x.status/100 != 2 || within.Err() != nil {
		return nil, c.doer.failure(ctx, within, x, err)
	}
	var models struct {
		Data []json.RawMessage `json:"data"`
	}
	json.Unmarshal(x.raw.Bytes(), &models) // the list stays empty if this fails
	var names []string
	for _, card := range models.Data {
		var m struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(card, &m); m.ID != "" {
			names = append(names, m.ID)
		}
		if m.ID == c.cfg.Name {
			c.narrow(windowOf(card))
		}
	}
	return names, nil
}

// nearest shows at most ten names, beginning with those that share the most words with the configured one.
func (c *Client) nearest(names []string) string {
	const shown = 10
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	}
	wanted := words(c.cfg.Name)
	shared := func(name string) (n int) {
		for _, word := range words(name) {
			if slices.Contains(wanted, word) {
				n++
			}
		}
		return n
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return shared(b) - shared(a) })
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}

// rootText is the innermost text of a network error: "connection refused" without the address and the dialing.
func rootText(e *Error) string {
	var err error = e.cause
	for err != nil {
		inner := errors.Unwrap(err)
		if inner == nil {
			return oneLine(err.Error())
		}
		err = inner
	}
	return e.Message
}
