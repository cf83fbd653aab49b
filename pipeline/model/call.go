package model

import (
	"cmp"
	"context"
	"time"

	"trajgen/pipeline/episode"
)

// call is one Complete under way: as many tries as it takes, or as are allowed.
type call struct {
	*Client
	taped   int // tries that a tape has, or was asked for
	req     Request
	sent    exchange // what every try sends
	breaker *breaker // nil when no outage pauses the call
	patient bool     // waits for an outage to end, rather than failing for it
	began   time.Time

	at      int             // the endpoint of the episode's last turn, then that of the last try; -1 when there is none
	tries   int             // that counted
	retries []episode.Fault // what the tries so far died of
	waited  time.Duration   // for permission to send, and between tries
	outage  bool            // the last try died in one, which the next one waits for
}

// try is one sending of the request, and what became of it.
type try struct {
	*call
	x       exchange
	asked   bool          // the request was sent, or may have been
	elapsed time.Duration // from then to its end
	reply   Reply
	failed  *Error
}

// step is something that comes before a try is sent. It may wait, or refuse the try. What it gives back is called when
// the try has ended, in whatever way, and finds there what became of it.
type step func(context.Context, *try) (end func(), failed *Error)

// steps are those of every try, in their order. What may wait long comes first, so that it holds nothing meanwhile that
// others wait for.
func (c *Client) steps() []step {
	if c.cfg.Replay != nil {
		return []step{c.played}
	}
	return []step{
		c.sitOut,  // an outage
		c.pay,     // until the budget takes it
		c.queueUp, // until an endpoint takes the request
		c.unless,  // an outage began meanwhile
	}
}

// errAgain stands for a try that was not sent and has to begin anew.
var errAgain = &Error{Class: ClassCancelled, Message: "an outage began"}

// complete makes tries until one gives a reply or there is no point in another one.
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
		if class := c.relearn(&t.x, t.failed); class != "" {
			c.retries = append(c.retries, episode.Fault{Outcome: episode.ModelError, Class: class, Message: t.failed.Message})
			continue
		}
		pause, again := c.again(ctx, t.failed)
		switch {
		case !again && t.failed.Class == ClassEmpty:
			return t.answer(), nil // it has nothing else to say
		case !again:
			return nil, c.end(t.failed)
		}
		if resampled[t.failed.Class] {
			c.sent.resampled++
		}
		c.note(t.failed, pause)
		c.cfg.Logger.DebugContext(ctx, "model call is tried again", "episode", c.req.Episode, "class", t.failed.Class,
			"status", t.failed.Status, "message", t.failed.Message, "try", len(c.retries), "pause", pause)
		if !c.rest(ctx, pause) {
			return nil, c.end(c.failure(ctx, ctx, &t.x, context.Cause(ctx)))
		}
	}
}

// answer is the try's reply, with what the call went through before.
func (t *try) answer() *Reply {
	t.reply.Retries, t.reply.Waited, t.reply.Retried = t.retries, t.waited.Truncate(time.Millisecond), t.tries
	return &t.reply
}

// noted is how many tries of one call are kept each by itself. An outage may take thousands.
const noted = 50

// note keeps what a try died of.
func (c *call) note(failed *Error, pause time.Duration) {
	fault := failed.Fault()
	fault.Pause = pause
	if last := len(c.retries) - 1; len(c.retries) >= noted && c.retries[last].Class == fault.Class {
		c.retries[last].Pause += pause
		return
	}
	c.retries = append(c.retries, fault)
}

// end adds what the call went through to its last error.
func (c *call) end(failed *Error) *Error {
	failed.Retries, failed.Waited, failed.Retried = c.retries, c.waited.Truncate(time.Millisecond), c.tries
	return failed
}

// rest pauses and tells whether the context let it.
func (c *call) rest(ctx context.Context, pause time.Duration) bool {
	if c.cfg.Replay != nil {
		return true
	}
	began := c.cfg.Now()
	defer func() { c.waited += c.cfg.Now().Sub(began) }()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// run takes the try's steps and sends it. The agent's clock runs while the request is under way, and what failed is
// not on it.
func (t *try) run(ctx context.Context) {
	began := t.cfg.Now()
	for _, step := range t.steps() {
		end, failed := step(ctx, t)
		if end != nil {
			defer end() // also when a bug of ours panics
		}
		if failed != nil {
			t.failed = failed
			break
		}
	}
	sent := t.cfg.Now()
	t.waited += sent.Sub(began)
	if t.outage {
		t.retries[len(t.retries)-1].Pause += sent.Sub(began)
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
	t.failed = t.exchange(ctx, t)
	t.elapsed = t.cfg.Now().Sub(sent)
}

// exchange sends the request once and reads its reply. Thousands of tries wait in here: a frame with a Reply in it would
// double the stack of each.
func (c *Client) exchange(ctx context.Context, t *try) *Error {
	x := &t.x
	if ctx.Err() != nil { // net/http may notice only after it has sent the request
		return c.failure(ctx, ctx, x, context.Cause(ctx))
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.cancel, x.timeout = cancel, cmp.Or(x.timeout, c.cfg.Timeout)
	deadline := time.AfterFunc(x.timeout, func() { cancel(errTimeout) })
	defer deadline.Stop()

	t.asked = true
	err := c.send(within, &t.req, x)
	if err == nil {
		err = c.read(t)
	}
	if err != nil {
		return c.failure(ctx, within, x, err)
	}
	return nil
}

// read makes the reply of what came.
func (c *Client) read(t *try) error {
	var plain draft
	d, err := decode(&t.x, &plain)
	if err != nil {
		return err
	}
	reply, err := c.reply(d, &t.req)
	if reply == nil {
		return err
	}
	reply.RequestID = cmp.Or(requestID(t.x.header), reply.RequestID)
	if t.x.stream {
		c.doer.concealSplit(&t.x, reply)
	}
	if t.x.masked {
		reply.Repairs = append(reply.Repairs, "masked secret")
	}
	t.reply = *reply
	if err == nil {
		c.missTokens(reply)
	}
	return err
}
