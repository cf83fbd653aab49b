package model

import (
	"cmp"
	"context"
	"time"

	"trajgen/pipeline/episode"
)

// call is one Complete under way: tries until one succeeds or no more are allowed.
type call struct {
	*Client
	taped   int // tries recorded on a tape, or replayed from one
	req     Request
	sent    exchange // what every try sends
	breaker *breaker // nil when no outage pauses the call
	patient bool     // waits for an outage to end instead of failing
	began   time.Time

	Tries
	at     int  // the endpoint of the episode's last turn, then that of the last try; -1 when there is none
	outage bool // the last try failed in an outage, and the next one waits for its end
}

// try is one attempt to send the request, and its result.
type try struct {
	*call
	x       exchange
	asked   bool          // the request was sent, or may have been
	elapsed time.Duration // from then to its end
	reply   Reply
	failed  *Error
}

// step is something that comes before a try is sent. It may wait, or refuse the try. end is called when the try has ended, in
// any way.
type step func(context.Context) (end func(), failed *Error)

// steps are the steps of every try, in order. The longest wait comes first, so that a try holds nothing during it that other
// tries wait for.
func (t *try) steps() []step {
	if t.cfg.Replay != nil {
		return []step{t.played}
	}
	return []step{
		t.waitOutage,  // until an outage is over
		t.pay,         // until the budget allows the request
		t.queueUp,     // until an endpoint takes the request
		t.checkOutage, // an outage may have begun meanwhile
	}
}

// errAgain marks a try that was not sent and has to begin again.
var errAgain = &Error{Class: ClassCancelled, Message: "an outage began"}

// complete makes tries until one gives a reply or another one would not help.
func (c *call) complete(ctx context.Context) (*Reply, *Error) {
	for {
		t := &try{call: c, x: c.sent}
		if failed := t.thread(); failed != nil {
			return nil, c.end(failed)
		}
		t.run(ctx)
		if failed := t.record(ctx); failed != nil {
			return nil, c.end(failed)
		}
		if t.failed == nil {
			c.throttle.earn()
			return t.answer(), nil
		}
		if t.failed == errAgain {
			continue
		}
		if class := c.requests.relearn(&t.x, t.failed); class != "" {
			c.Retries = append(c.Retries, episode.Fault{Outcome: episode.ModelError, Class: class, Message: t.failed.Message})
			continue
		}
		pause, again := c.again(ctx, t.failed)
		switch {
		case !again && t.failed.Class == ClassEmpty:
			return t.answer(), nil // the empty reply is the answer
		case !again:
			return nil, c.end(t.failed)
		}
		if policies[t.failed.Class].resample {
			c.sent.resampled++
		}
		c.note(t.failed, pause)
		c.cfg.Logger.DebugContext(ctx, "model call is tried again", "episode", c.req.Episode, "class", t.failed.Class,
			"status", t.failed.Status, "message", t.failed.Message, "try", len(c.Retries), "pause", pause)
		if !c.rest(ctx, pause) {
			return nil, c.end(c.doer.failure(ctx, ctx, &t.x, context.Cause(ctx)))
		}
	}
}

// answer is the try's reply, with the call's retries and waits.
func (t *try) answer() *Reply {
	t.Waited = t.Waited.Truncate(time.Millisecond)
	t.reply.Tries = t.Tries
	return &t.reply
}

// noted is how many retries of one call are kept separately. An outage may cause thousands.
const noted = 50

// note keeps the error of a try.
func (c *call) note(failed *Error, pause time.Duration) {
	fault := failed.Fault()
	fault.Pause = pause
	if last := len(c.Retries) - 1; len(c.Retries) >= noted && c.Retries[last].Class == fault.Class {
		c.Retries[last].Pause += pause
		return
	}
	c.Retries = append(c.Retries, fault)
}

// end adds the call's retries and waits to its last error.
func (c *call) end(failed *Error) *Error {
	c.Waited = c.Waited.Truncate(time.Millisecond)
	failed.Tries = c.Tries
	return failed
}

// rest pauses. It returns false if the context ended first.
func (c *call) rest(ctx context.Context, pause time.Duration) bool {
	if c.cfg.Replay != nil {
		return true
	}
	began := c.cfg.Now()
	defer func() { c.Waited += c.cfg.Now().Sub(began) }()
	return sleep(ctx, pause, nil)
}

// sleep waits for a duration, or until change is closed. It returns false if the context ended first.
func sleep(ctx context.Context, most time.Duration, change <-chan struct{}) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-change:
	case <-ctx.Done():
		return false
	}
	return true
}

// run takes the try's steps and sends it. The agent's clock runs while the request is in flight; the time of a failed try is
// taken back.
func (t *try) run(ctx context.Context) {
	began := t.cfg.Now()
	for _, step := range t.steps() {
		end, failed := step(ctx)
		if end != nil {
			defer end() // also after a panic
		}
		if failed != nil {
			t.failed = failed
			break
		}
	}
	sent := t.cfg.Now()
	t.Waited += sent.Sub(began)
	if t.outage {
		t.Retries[len(t.Retries)-1].Pause += sent.Sub(began)
	}
	if t.failed != nil {
		return
	}
	if clock := t.req.Clock; clock != nil {
		clock.Start()
		defer func() {
			if t.failed != nil && t.failed.Class != ClassCancelled {
				clock.Back()
			}
		}()
	}
	t.failed = t.exchange(ctx)
	t.elapsed = t.cfg.Now().Sub(sent)
}

// exchange sends the request once and reads its reply. Thousands of goroutines wait in here, and a Reply in this frame would
// double the stack of each.
func (t *try) exchange(ctx context.Context) *Error {
	x := &t.x
	if ctx.Err() != nil { // net/http may notice only after it has sent the request
		return t.doer.failure(ctx, ctx, x, context.Cause(ctx))
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.cancel, x.timeout = cancel, cmp.Or(x.timeout, t.cfg.Timeout)
	deadline := time.AfterFunc(x.timeout, func() { cancel(errTimeout) })
	defer deadline.Stop()

	t.asked = true
	err := t.send(within)
	if err == nil {
		err = t.read()
	}
	if err != nil {
		return t.doer.failure(ctx, within, x, err)
	}
	return nil
}

// read turns the received bytes into the reply.
func (t *try) read() error {
	var plain draft
	d, err := decode(&t.x, &plain)
	if err != nil {
		return err
	}
	reply, err := t.replies.reply(d, &t.req)
	if reply == nil {
		return err
	}
	reply.RequestID = cmp.Or(requestID(t.x.header), reply.RequestID)
	if t.x.stream {
		t.doer.concealSplit(&t.x, reply)
	}
	if t.x.masked {
		reply.Repairs = append(reply.Repairs, "masked secret")
	}
	t.reply = *reply
	if err == nil {
		t.replies.missTokens(reply)
	}
	return err
}
