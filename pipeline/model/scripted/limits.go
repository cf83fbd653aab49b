package scripted

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// bucket is a token bucket: it holds at most so much, and fills steadily.
type bucket struct {
	size float64
	rate float64 // per second

	mu   sync.Mutex
	have float64
	at   time.Time
}

// take takes n out, or says how long it will be until n are there. left and full are for the headers: what remains,
// and the time until the bucket is full again.
func (b *bucket) take(now time.Time, n float64) (ok bool, wait time.Duration, left int, full time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.have = b.size
	} else if passed := now.Sub(b.at); passed > 0 {
		b.have = min(b.size, b.have+passed.Seconds()*b.rate)
	}
	b.at = now
	// Sums of small steps may lack a billionth.
	if ok = b.have >= n-1e-9; ok {
		b.have -= n
	} else {
		wait = inSeconds((n - b.have) / b.rate)
	}
	return ok, wait, int(max(0, b.have+1e-9)), inSeconds((b.size - b.have) / b.rate)
}

// inSeconds is so many seconds, rounded up, and no more than fit.
func inSeconds(s float64) time.Duration { return time.Duration(math.Ceil(min(max(0, s), 1e9) * 1e9)) }

// limiter is what an account may ask for: requests each second, tokens each minute. Either may be nil.
type limiter struct{ requests, tokens *bucket }

func newLimiter(cfg Config) *limiter {
	var l limiter
	if cfg.RequestRate > 0 {
		l.requests = &bucket{size: float64(max(1, cfg.RequestBurst)), rate: cfg.RequestRate}
	}
	if cfg.TokenRate > 0 {
		l.tokens = &bucket{size: float64(cfg.TokenRate), rate: float64(cfg.TokenRate) / 60}
	}
	return &l
}

// takeRequest and takeTokens write the headers that OpenAI sends with every reply, refused or not: what the bucket
// holds when it is full, what is left, and how long it takes to be full again. Only a request that is let through
// takes something out. The tokens are those of the prompt and of the reply: a script knows its length beforehand.
func (l *limiter) takeRequest(now time.Time, header http.Header) *refusal {
	return l.requests.charge(now, header, "requests", "requests per second", 1)
}

func (l *limiter) takeTokens(now time.Time, header http.Header, tokens int) *refusal {
	return l.tokens.charge(now, header, "tokens", "tokens per min (TPM)", tokens)
}

func (b *bucket) charge(now time.Time, header http.Header, kind, unit string, n int) *refusal {
	if b == nil {
		return nil
	}
	ok, wait, left, full := b.take(now, float64(n))
	set := func(name, value string) { header.Set("X-Ratelimit-"+name+"-"+kind, value) }
	set("Limit", strconv.Itoa(int(b.size)))
	set("Remaining", strconv.Itoa(left))
	set("Reset", rounded(full).String())
	if ok {
		return nil
	}
	r := &refusal{status: http.StatusTooManyRequests, kind: kind, code: "rate_limit_exceeded"}
	if float64(n) > b.size {
		r.message = fmt.Sprintf("Request too large on %s: Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully.",
			unit, int(b.size), n)
		return r
	}
	wait = rounded(wait)
	header.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	header.Set("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	limit := b.size
	if kind == "requests" {
		limit = b.rate
	}
	r.message = fmt.Sprintf("Rate limit reached for this model on %s: Limit %g, Used %g, Requested %d. Please try again in %v.",
		unit, limit, limit-float64(left), n, wait)
	return r
}

// rounded is a duration in whole milliseconds, never too short: "1s", "6m0s", "120ms".
func rounded(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
