package scripted

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Outage is a time in which the server cannot be used, counted from the first chat completion that it is asked for.
type Outage struct {
	From, To time.Duration
	Refuse   bool // connections are closed without an answer; otherwise the answer is a 503
}

// ParseOutage reads a window such as 30s-90s, and 30s-90s;refuse where connections are closed without an answer.
func ParseOutage(spec string) (Outage, error) {
	window, mode, _ := strings.Cut(spec, ";")
	from, to, _ := strings.Cut(window, "-")
	var o Outage
	var err, err2 error
	o.From, err = time.ParseDuration(strings.TrimSpace(from))
	o.To, err2 = time.ParseDuration(strings.TrimSpace(to))
	o.Refuse = mode == "refuse"
	if err = errors.Join(err, err2, o.check()); err != nil || mode != "" && !o.Refuse {
		return Outage{}, fmt.Errorf("outage %q (want e.g. 30s-90s or 30s-90s;refuse)", spec)
	}
	return o, nil
}

func (o Outage) check() error {
	if o.From < 0 || o.To <= o.From {
		return fmt.Errorf("outage from %v to %v (want 0 <= from < to)", o.From, o.To)
	}
	return nil
}

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

// load is what the server is busy with.
type load struct {
	slots chan struct{} // one for each request that is worked on; nil for any number

	mu    sync.Mutex
	first time.Time
	stats Stats
}

// enter counts a request in; leave must be called with what became of it. full says that there are too many.
func (l *load) enter(now time.Time, most int) (full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		l.first = now
	}
	l.stats.Requests++
	l.stats.InFlight++
	l.stats.Peak = max(l.stats.Peak, l.stats.InFlight)
	return most > 0 && l.stats.InFlight > most
}

func (l *load) leave(status int, refused bool, sent *usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.InFlight--
	if refused {
		l.stats.Refused++
	}
	if l.stats.Status == nil {
		l.stats.Status = make(map[int]int)
	}
	l.stats.Status[status]++
	if sent != nil {
		l.stats.Prompt += sent.Prompt
		l.stats.Reply += sent.Completion
	}
}

// slot waits for its turn, in order of coming. The work that has one is done at the pace of Config.Latency and
// Config.Speed, so that the time to a reply grows with the number of clients, as it does before a GPU.
func (s *Server) slot(ctx context.Context) (free func(), ok bool) {
	if s.load.slots == nil {
		return func() {}, true
	}
	s.load.wait(1)
	defer s.load.wait(-1)
	select {
	case s.load.slots <- struct{}{}:
		return func() { <-s.load.slots }, true
	case <-ctx.Done():
	case <-s.stopped.Done():
	}
	return nil, false
}

func (l *load) wait(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Waiting += n
}

// since is the time since the first request, 0 before it.
func (l *load) since(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		return 0
	}
	return now.Sub(l.first)
}

// Stats is what was counted so far.
func (s *Server) Stats() Stats {
	age := s.load.since(s.cfg.Now())
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	stats := s.load.stats
	stats.Status = make(map[int]int, len(s.load.stats.Status))
	for status, n := range s.load.stats.Status {
		stats.Status[status] = n
	}
	stats.Seconds = age.Seconds()
	return stats
}

// outage is the refusal of this moment, if there is one.
func (s *Server) outage() *refusal {
	if len(s.cfg.Outages) == 0 {
		return nil
	}
	age := s.load.since(s.cfg.Now())
	for _, o := range s.cfg.Outages {
		if age < o.From || age >= o.To {
			continue
		}
		if o.Refuse {
			return &refusal{}
		}
		return &refusal{status: http.StatusServiceUnavailable, kind: "server_error", code: "service_unavailable",
			message: "The service is temporarily unavailable."}
	}
	return nil
}

var overloaded = &refusal{status: http.StatusServiceUnavailable, kind: "server_error", code: "overloaded",
	message: "The engine is currently overloaded, please try again later"}
