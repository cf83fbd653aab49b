package model

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// policy says how a class of errors is retried.
type policy struct {
	// most bounds the retries in addition to Config.Retries; 0 adds no bound.
	most int
	// slow makes the pauses longer.
	slow bool
	// free retries are not counted by the throttle: the server did no work for the request.
	free bool
	// outage says that an outage causes errors of this class.
	outage bool
	// neutral errors show neither that the server works nor that it does not. An error that is neither outage nor neutral is
	// the answer of a working server.
	neutral bool
}

// policies has the classes that are retried. All others end the call at once: the same request would fail again. A request is
// retried at most Config.Retries times; retries during an outage do not count.
var policies = map[string]policy{
	// The server works and wants fewer requests. Its gate slows all requests down.
	ClassRateLimit:  {free: true, outage: true, neutral: true},
	ClassOverloaded: {outage: true},
	// The server worked on the request all the time: that is expensive, and likely to happen again.
	ClassTimeout:    {most: 2, outage: true},
	ClassStalled:    {most: 3, outage: true},
	ClassConnection: {outage: true},
	ClassServer:     {outage: true},
	// A server that returns nonsense is likely to do so again soon.
	ClassMalformed: {most: 3, slow: true, neutral: true},
	// The server works, and another sample may be better.
	ClassEmpty:  {most: 2},
	ClassUnread: {most: 2},
}

// resampled are the classes after which the retry has another seed: with the same one the model would reply the same.
var resampled = map[string]bool{ClassMalformed: true, ClassEmpty: true, ClassUnread: true}

// again decides whether a call is worth another try, and after which pause.
func (c *call) again(ctx context.Context, failed *Error) (pause time.Duration, again bool) {
	if c.cfg.Replay != nil {
		return c.repeated(ctx, failed)
	}
	p, retried := policies[failed.Class]
	c.outage = false
	switch {
	case !retried || failed.Fatal || failed.paused || ctx.Err() != nil:
		return 0, false
	case c.breaker.paused(), p.outage && (!c.allowed(p) || c.breaker.suspects()) && c.breaker.confirm(ctx, failed):
		c.outage = true // the breaker decides when
		return 0, true
	case !c.allowed(p):
		return 0, false
	}
	c.tries++
	pause = c.pause(p, c.tries)
	if wish := min(failed.RetryAfter, MaxRetryAfter); wish > 0 {
		pause = max(pause, apart(wish))
	}
	if !p.free {
		pause = max(pause, c.throttle.take(c.cfg.Now()))
	}
	return pause, true
}

// allowed reports whether the request and the episode have retries left.
func (c *call) allowed(p policy) bool {
	most := c.cfg.Retries
	if p.most > 0 {
		most = min(most, p.most)
	}
	if limit := c.cfg.EpisodeRetries; limit > 0 {
		most = min(most, limit-c.req.Retried)
	}
	return c.tries < most
}

// pause draws the pause before the n-th retry: between 0 and a bound that doubles each time, so that calls that failed together
// do not retry together.
func (c *call) pause(p policy, n int) time.Duration {
	base, longest := c.cfg.RetryBase, c.cfg.RetryMax
	if p.slow {
		base, longest = base*5/2, longest*2
	}
	// The library draws evenly between 0 and twice its interval.
	pauses := backoff.ExponentialBackOff{
		InitialInterval: base / 2, MaxInterval: max(longest, base) / 2, Multiplier: 2, RandomizationFactor: 1,
	}
	pauses.Reset()
	for range n - 1 {
		pauses.NextBackOff()
	}
	return pauses.NextBackOff()
}
