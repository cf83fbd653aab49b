package scripted

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// Stats is what the server counted since it was made, of chat completions only.
type Stats struct {
	Requests int         `json:"requests"`       // that came, whatever became of them
	Refused  int         `json:"refused"`        // by a rate limit, for overload or in an outage
	InFlight int         `json:"in_flight"`      // now
	Peak     int         `json:"peak_in_flight"` // at most
	Waiting  int         `json:"waiting"`        // now, for a slot
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

func (l *load) leave(v *visit) {
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
	l.wait(1)
	defer l.wait(-1)
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, true
	case <-ctx.Done():
		return nil, false
	}
}

func (l *load) wait(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Waiting += n
}

// visit is a request, with what became of it.
type visit struct {
	http.ResponseWriter
	status  int
	refused bool
	usage   openai.Usage // of the reply that was sent
}

func (v *visit) refuse(no *refusal) {
	v.refused = true
	no.write(v)
}

func (v *visit) Unwrap() http.ResponseWriter { return v.ResponseWriter }

func (v *visit) WriteHeader(status int) {
	v.status = status
	v.ResponseWriter.WriteHeader(status)
}

func (v *visit) Write(p []byte) (int, error) {
	if v.status == 0 {
		v.status = http.StatusOK
	}
	return v.ResponseWriter.Write(p)
}
