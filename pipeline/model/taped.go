package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/model/record"
)

// ClassTape is fatal: the tape cannot be written, or the replayed tape does not have the request.
const ClassTape = "tape"

// SettableClock is a Clock that a replay sets to the recorded time, as a tape answers at once.
type SettableClock interface {
	Clock
	Left() time.Duration
	Set(left time.Duration)
}

// asker identifies the call's conversation on a tape; false for a request outside of any episode.
func (c *call) asker() (record.Asker, bool) {
	return record.Asker{Episode: c.req.Episode, Attempt: c.req.Attempt, Role: c.cfg.Role}, c.req.Episode != ""
}

// taped is a try's exchange on a tape.
type taped struct {
	tape     *record.Replay // the replayed tape; nil when one is recorded
	exchange record.Exchange
	body     bytes.Buffer
	cause    func() error // why the client cancelled the try, if it did; nil until it was sent
	clock    SettableClock
}

// thread prepares the try for recording or replay, if there is a tape.
func (t *try) thread() *Error {
	c := t.call
	if c.cfg.Record == nil && c.cfg.Replay == nil {
		return nil
	}
	asker, ok := c.asker()
	if !ok {
		if c.cfg.Replay == nil {
			return nil
		}
		return &Error{Class: ClassTape, Fatal: true, Message: "a model was asked outside of any episode, which no tape answers"}
	}
	t.x.taped = &taped{tape: c.cfg.Replay, exchange: record.Exchange{
		Asker: asker, Turn: t.req.Turn, Try: c.taped, Model: c.cfg.Name, Outage: c.outage,
	}}
	if c.cfg.Replay != nil {
		c.taped++
	}
	t.x.taped.clock, _ = t.req.Clock.(SettableClock)
	if n := len(t.Retries); n > 0 {
		t.x.taped.exchange.Pause = t.Retries[n-1].Pause
	}
	return nil
}

// played is the only step of a replay, which waits for nothing.
func (t *try) played(context.Context) (end func(), failed *Error) {
	at := t.x.taped
	t.x.api = t.endpoints[0].client(&t.x)
	if next, ok := at.tape.Peek(at.exchange.Asker); ok {
		if !t.patient && next.Model != t.cfg.Name {
			return nil, &Error{Class: ClassConnection, Message: "it was not asked when the tape was recorded", paused: true}
		}
		t.x.limitField, t.x.seedless = next.LimitField, next.Seedless
	}
	return func() {
		t.reply.Endpoint = at.exchange.Endpoint
		if at.exchange.Left != nil && at.clock != nil {
			at.clock.Set(*at.exchange.Left)
		}
	}, nil
}

// repeated decides in a replay whether a call is tried again: as it was when the tape was recorded.
func (c *call) repeated(ctx context.Context, failed *Error) (pause time.Duration, again bool) {
	asker, known := c.asker()
	if !known || failed.Class == ClassTape || failed.paused || ctx.Err() != nil {
		return 0, false
	}
	next, more := c.cfg.Replay.Peek(asker)
	if !more || next.Turn != c.req.Turn || next.Try != c.taped {
		return 0, false
	}
	if c.outage = next.Outage; !c.outage {
		c.Retried++
	}
	return next.Pause, true
}

// record writes a try and its result to the tape.
func (t *try) record(ctx context.Context) *Error {
	at := t.x.taped
	if at == nil || at.tape != nil {
		return nil
	}
	x := &at.exchange
	x.Elapsed, x.Status, x.Header, x.Body, x.Masked = t.elapsed, t.x.status, kept(t.x.header), at.body.Bytes(), t.x.masked
	x.Endpoint, x.LimitField, x.Seedless = t.reply.Endpoint, t.x.limitField, t.x.seedless
	if at.clock != nil {
		left := at.clock.Left()
		x.Left = &left
	}
	if f := t.failed; f != nil {
		switch {
		case f.Class == ClassCancelled && !late(ctx):
			return nil // the run was cancelled: a resume plays the episode from its beginning
		case f.Class == ClassCancelled:
			x.End = record.Late
		case at.cause != nil && at.cause() == errTimeout:
			x.End = record.TimedOut
		case at.cause != nil && at.cause() == errIdle:
			x.End = record.Stalled
		case at.cause == nil:
			return nil // the try was never sent
		}
	}
	t.taped++
	if err := t.cfg.Record.Add(x); err != nil {
		return &Error{Class: ClassTape, Fatal: true, Message: err.Error(), cause: err}
	}
	return nil
}

// ErrTimeUp ends the context of a call whose asker has no time left.
var ErrTimeUp = errors.New("the episode's time is up")

// late reports whether a context ended because the asker's time was up, and not with the run.
func late(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrTimeUp) || errors.Is(cause, context.DeadlineExceeded)
}

// roundTrip sends a request, and records the answer if there is a tape, or replays it.
func (d *doer) roundTrip(req *http.Request, x *exchange) (*http.Response, error) {
	at := x.taped
	if at != nil {
		at.cause = func() error { return context.Cause(req.Context()) }
		if at.tape != nil {
			return at.play(req, x)
		}
	}
	resp, err := d.http.Do(req)
	switch {
	case err == nil:
		d.conceal(resp, x)
	case at != nil:
		at.exchange.End = record.Failed
		at.exchange.Error, at.exchange.Slow = d.bad.text(err.Error()), slow(err)
	}
	if err == nil && at != nil {
		resp.Body = &recordedBody{resp.Body, at}
	}
	return resp, err
}

func slow(err error) bool {
	network, ok := errors.AsType[net.Error](err)
	return ok && network.Timeout()
}

// recordedBody records a body as it is read.
type recordedBody struct {
	io.ReadCloser
	at *taped
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.at.body.Write(p[:n])
	if err != nil && err != io.EOF {
		x := &b.at.exchange
		x.End, x.Error, x.Slow = record.Broken, err.Error(), slow(err)
	}
	return n, err
}

// play answers from the tape.
func (at *taped) play(req *http.Request, x *exchange) (*http.Response, error) {
	was, err := at.tape.Next(at.exchange.Asker, at.exchange.Turn, at.exchange.Request)
	if err != nil {
		return nil, &refusal{class: ClassTape, message: "replay: " + err.Error()}
	}
	at.exchange, x.masked = *was, was.Masked
	if was.Status == 0 {
		return nil, at.end(req.Context(), x)
	}
	header := was.Header
	if header == nil {
		header = http.Header{}
	}
	body := io.MultiReader(bytes.NewReader(was.Body), &ending{at, req.Context(), x})
	return &http.Response{
		Status: http.StatusText(was.Status), StatusCode: was.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(body), ContentLength: -1, Request: req,
	}, nil
}

// ending is a reader that gives the recorded end of a body.
type ending struct {
	at  *taped
	ctx context.Context
	x   *exchange
}

func (e *ending) Read([]byte) (int, error) { return 0, e.at.end(e.ctx, e.x) }

// end repeats the recorded end of the exchange.
func (at *taped) end(ctx context.Context, x *exchange) error {
	was := &at.exchange
	switch was.End {
	case record.Whole:
		return io.EOF
	case record.TimedOut:
		x.cancel(errTimeout)
	case record.Stalled:
		x.cancel(errIdle)
	case record.Late:
		if at.clock == nil {
			x.cancel(errLate)
			break
		}
		at.clock.Set(0)
		<-ctx.Done()
	default:
		return &recordedError{was.Error, was.Slow}
	}
	return context.Canceled
}

// errLate stands for the end of the caller's context when the tape was recorded.
var errLate = fmt.Errorf("the caller's time was up when the tape was recorded: %w", context.DeadlineExceeded)

// recordedError is a recorded network error.
type recordedError struct {
	text string
	slow bool
}

func (h *recordedError) Error() string   { return h.text }
func (h *recordedError) Timeout() bool   { return h.slow }
func (h *recordedError) Temporary() bool { return false }

var keptHeaders = []string{
	"Content-Type", "Date", "Location", "Retry-After", "Retry-After-Ms", "X-Request-Id", "Request-Id", "X-Amzn-Requestid", "Apim-Request-Id",
}

// kept returns the headers that a replay needs; they hold no secret.
func kept(all http.Header) http.Header {
	kept := http.Header{}
	for name, values := range all {
		if slices.Contains(keptHeaders, name) || strings.HasPrefix(name, "X-Ratelimit-") {
			kept[name] = slices.Clone(values)
		}
	}
	return kept
}

// asked keeps the request, to record it or to compare it with the tape.
func (at *taped) asked(fields, messages, tools []byte) {
	if at != nil {
		at.exchange.Request = record.Request{Fields: fields, Messages: slices.Concat(messages, []byte("]")), Tools: tools}
	}
}
