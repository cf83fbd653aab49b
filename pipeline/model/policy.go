package model

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// policy says what follows from a class of errors.
type policy struct {
	// fatal errors stop the run.
	fatal bool
	// retried says that the same request may succeed later.
	retried bool
	// fallback says that another model, if there is one, is asked afterwards.
	fallback bool
	// resample says that a retry has another seed: with the same one the model would reply the same.
	resample bool
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

// policies has a policy for each class of errors. Classes that are not in it concern one conversation alone. A request is
// retried at most Config.Retries times; retries during an outage do not count.
var policies = map[string]policy{
	ClassAuth:            {fatal: true},
	ClassQuota:           {fatal: true},
	ClassModelNotFound:   {fatal: true},
	ClassTape:            {fatal: true},
	ClassImage:           {fatal: true},
	ClassContentPolicy:   {fallback: true},
	ClassRequestTooLarge: {fallback: true},
	// The server works and wants fewer requests. Its gate slows all requests down.
	ClassRateLimit:  {retried: true, fallback: true, free: true, outage: true, neutral: true},
	ClassOverloaded: {retried: true, fallback: true, outage: true},
	// The server worked on the request all the time: that is expensive, and likely to happen again.
	ClassTimeout:    {retried: true, fallback: true, most: 2, outage: true},
	ClassStalled:    {retried: true, fallback: true, most: 3, outage: true},
	ClassConnection: {retried: true, fallback: true, outage: true},
	ClassServer:     {retried: true, fallback: true, outage: true},
	// A server that returns nonsense is likely to do so again soon.
	ClassMalformed: {retried: true, fallback: true, resample: true, most: 3, slow: true, neutral: true},
	// The server works, and another sample may be better.
	ClassEmpty:  {retried: true, resample: true, most: 2},
	ClassUnread: {retried: true, fallback: true, resample: true, most: 2},
}

// again decides whether a call is worth another try, and after which pause.
func (c *call) again(ctx context.Context, failed *Error) (pause time.Duration, again bool) {
	if c.cfg.Replay != nil {
		return c.repeated(ctx, failed)
	}
	p := policies[failed.Class]
	c.outage = false
	switch {
	case !p.retried || failed.Fatal || failed.paused || ctx.Err() != nil:
		return 0, false
	case c.breaker.paused(), p.outage && (!c.allowed(p) || c.breaker.suspects()) && c.breaker.confirm(ctx, failed):
		c.outage = true // the breaker decides when
		return 0, true
	case !c.allowed(p):
		return 0, false
	}
	c.Retried++
	pause = c.pause(p, c.Retried)
	if wish := min(failed.RetryAfter, MaxRetryAfter); wish > 0 {
		pause = max(pause, jittered(wish))
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
	return c.Retried < most
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
