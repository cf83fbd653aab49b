package scripted

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

// quota is what an account may ask for: a token bucket, which holds at most so much and fills steadily.
type quota struct {
	*rate.Limiter
	kind, unit string
	limit      float64 // per unit
}

// newQuota makes one of so much each time that has so many seconds; nil when limit is 0.
func newQuota(kind, unit string, limit, seconds float64, burst int) *quota {
	if limit == 0 {
		return nil
	}
	return &quota{rate.NewLimiter(rate.Limit(limit/seconds), burst), kind, unit, limit}
}

// charge takes n out and writes the headers that OpenAI sends with every reply, refused or not: what the bucket holds
// when it is full, what is left, and how long it takes to be full again. Only a request that is let through takes
// something out. The tokens are those of the prompt and of the reply: a script knows its length beforehand.
func (q *quota) charge(now time.Time, header http.Header, n int) *refusal {
	if q == nil {
		return nil
	}
	ok := q.AllowN(now, n)
	have := max(0, q.TokensAt(now))
	left := int(have + 1e-9)                // sums of small steps may lack a billionth
	until := func(want int) time.Duration { // in whole milliseconds, and never too short
		d := inSeconds((float64(want) - have) / float64(q.Limit()))
		return (d + time.Millisecond - 1).Truncate(time.Millisecond)
	}
	set := func(name, value string) { header.Set("X-Ratelimit-"+name+"-"+q.kind, value) }
	set("Limit", strconv.Itoa(q.Burst()))
	set("Remaining", strconv.Itoa(left))
	set("Reset", until(q.Burst()).String())
	if ok {
		return nil
	}
	r := &refusal{status: http.StatusTooManyRequests, Kind: q.kind, Code: "rate_limit_exceeded"}
	if n > q.Burst() {
		r.Message = fmt.Sprintf("Request too large on %s: Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully.",
			q.unit, q.Burst(), n)
		return r
	}
	wait := until(n)
	header.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	header.Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	r.Message = fmt.Sprintf("Rate limit reached for this model on %s: Limit %g, Used %g, Requested %d. Please try again in %v.",
		q.unit, q.limit, q.limit-float64(left), n, wait)
	return r
}
