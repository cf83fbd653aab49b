package model

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// policy is what is done about a class of errors that may pass.
type policy struct {
	// most bounds the retries beside Config.Retries; 0 is no bound of its own.
	most int
	// slow stretches the pauses: the reason takes longer to go away than that of others.
	slow bool
	// free retries do not draw on the run's budget of them: the server did no work for the request.
	free bool
	// outage says that in an outage errors are of the class.
	outage bool
	// neutral ones say by themselves neither that the server works nor that it does not. All that are neither outage nor
	// neutral are the answer of a server that works.
	neutral bool
}

// policies are those of the classes that are retried. All others end the call at once: the same request would end the
// same way. A request is tried again at most Config.Retries times, but an outage takes none of them.
var policies = map[string]policy{
	// The server is there and wants less. The gate in front of it slows down for everybody.
	ClassRateLimit:  {free: true, outage: true, neutral: true},
	ClassOverloaded: {outage: true},
	// The server worked on it all the while: that is dear, and likely to happen again.
	ClassTimeout:    {most: 2, outage: true},
	ClassStalled:    {most: 3, outage: true},
	ClassConnection: {outage: true},
	ClassServer:     {outage: true},
	// What a server makes of a request that it cannot deal with is as bad soon after.
	ClassMalformed: {most: 3, slow: true, neutral: true},
	// The server works, and another sample may say more.
	ClassEmpty:  {most: 2},
	ClassUnread: {most: 2},
}

// resampled are the classes after which a request is made with another seed: the model said it, and would say it again.
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
		c.outage = true // the breaker says when
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

// allowed says whether the request and the episode have retries left.
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

// pause draws the pause before the n-th retry: from nothing up to a bound that doubles each time, so that those who
// failed together do not come back together.
func (c *call) pause(p policy, n int) time.Duration {
	base, longest := c.cfg.RetryBase, c.cfg.RetryMax
	if p.slow {
		base, longest = base*5/2, longest*2
	}
	// The library draws evenly from nothing up to twice its interval.
	pauses := backoff.ExponentialBackOff{
		InitialInterval: base / 2, MaxInterval: max(longest, base) / 2, Multiplier: 2, RandomizationFactor: 1,
	}
	pauses.Reset()
	for range n - 1 {
		pauses.NextBackOff()
	}
	return pauses.NextBackOff()
}
