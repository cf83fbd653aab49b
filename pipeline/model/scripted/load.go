package scripted

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"golang.org/x/time/rate"
)

// Stats is what the server counted since it was made, of chat completions only.
type Stats struct {
	Requests int         `json:"requests"`       // that came, whatever became of them
	Refused  int         `json:"refused"`        // by a rate limit, for overload or in an outage
	InFlight int         `json:"in_flight"`      // now
	Peak     int         `json:"peak_in_flight"` // at most
	Status   map[int]int `json:"by_status"`      // 0: the connection was closed without an answer, or the client left
	Prompt   int         `json:"prompt_tokens"`  // of the replies that were sent
	Reply    int         `json:"completion_tokens"`
	Seconds  float64     `json:"seconds"` // since the first request
}

// Stats is what was counted so far.
func (s *Server) Stats() Stats {
	age := s.load.age()
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	stats := s.load.stats
	stats.Status, stats.Seconds = maps.Clone(stats.Status), age.Seconds()
	return stats
}

// load is what the server is busy with.
type load struct {
	slots chan struct{} // has room for the requests that are worked on; for none where any number may be

	mu    sync.Mutex // guards the two below
	first time.Time
	stats Stats
}

// age is the time since the first request, 0 before it.
func (l *load) age() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		return 0
	}
	return time.Since(l.first)
}

// enter counts a request in; leave must be called with what became of it. It gives the number in flight.
func (l *load) enter(now time.Time) (inFlight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		l.first = now
	}
	l.stats.Requests++
	l.stats.InFlight++
	l.stats.Peak = max(l.stats.Peak, l.stats.InFlight)
	return l.stats.InFlight
}

func (l *load) leave(v visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.InFlight--
	l.stats.Status[v.status]++
	if v.refused {
		l.stats.Refused++
	}
	l.stats.Prompt += v.usage.PromptTokens
	l.stats.Reply += v.usage.CompletionTokens
}

// slot waits for its turn, in order of coming. The work that has one is done at the pace of Config.Delay and
// Config.Speed, so that the time to a reply grows with the number of clients, as it does before a GPU.
func (l *load) slot(ctx context.Context) (free func(), ok bool) {
	if cap(l.slots) == 0 {
		return func() {}, true
	}
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

// visit is what became of a request.
type visit struct {
	status  int // 0 when nothing was sent
	refused bool
	usage   openai.Usage // of the reply that was sent
}

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
