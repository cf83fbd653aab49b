package scripted

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

// Outage is a time in which the server cannot be used, counted from the first chat completion that it is asked for.
type Outage struct {
	From, To time.Duration
	Refuse   bool // connections are closed without an answer; otherwise the answer is a 503
}

// ParseOutage reads a window such as 30s-90s, and 30s-90s;refuse where connections are closed without an answer.
func ParseOutage(spec string) (Outage, error) {
	window, mode, _ := strings.Cut(spec, ";")
	from, to, err := parseRange(window)
	o := Outage{From: from, To: to, Refuse: mode == "refuse"}
	if errors.Join(err, o.check()) != nil || mode != "" && !o.Refuse {
		return Outage{}, fmt.Errorf("outage %q (want e.g. 30s-90s or 30s-90s;refuse)", spec)
	}
	return o, nil
}

// parseRange reads a duration, or two of them around a dash.
func parseRange(spec string) (from, to time.Duration, err error) {
	first, last, isRange := strings.Cut(spec, "-")
	if !isRange {
		last = first
	}
	from, err = time.ParseDuration(strings.TrimSpace(first))
	to, err2 := time.ParseDuration(strings.TrimSpace(last))
	return from, to, errors.Join(err, err2)
}

func (o Outage) check() error {
	if o.From < 0 || o.To <= o.From {
		return fmt.Errorf("outage from %v to %v (want 0 <= from < to)", o.From, o.To)
	}
	return nil
}

// outage is the refusal of this moment, if there is one.
func (s *Server) outage() *refusal {
	if len(s.cfg.Outages) == 0 {
		return nil
	}
	age := s.load.age(s.cfg.Now())
	for _, o := range s.cfg.Outages {
		switch {
		case age < o.From || age >= o.To:
		case o.Refuse:
			return &refusal{}
		default:
			return &refusal{status: http.StatusServiceUnavailable, Kind: "server_error", Code: "service_unavailable",
				Message: "The service is temporarily unavailable."}
		}
	}
	return nil
}

var overloaded = &refusal{status: http.StatusServiceUnavailable, Kind: "server_error", Code: "overloaded",
	Message: "The engine is currently overloaded, please try again later"}

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
	age := s.load.age(s.cfg.Now())
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	stats := s.load.stats
	stats.Status, stats.Seconds = maps.Clone(stats.Status), age.Seconds()
	return stats
}

// load is what the server is busy with.
type load struct {
	slots chan struct{} // one for each request that is worked on; nil for any number

	mu    sync.Mutex
	first time.Time
	stats Stats
}

// age is the time since the first request, 0 before it.
func (l *load) age(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.IsZero() {
		return 0
	}
	return now.Sub(l.first)
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

func (l *load) leave(v *visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.InFlight--
	l.stats.Status[v.status]++
	if v.refused {
		l.stats.Refused++
	}
	if v.usage != nil {
		l.stats.Prompt += v.usage.PromptTokens
		l.stats.Reply += v.usage.CompletionTokens
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
	usage   *openai.Usage // of the reply that was sent
}

func (v *visit) refuse(no *refusal) {
	v.refused = true
	no.write(v)
}

func (v *visit) Unwrap() http.ResponseWriter { return v.ResponseWriter }

func (v *visit) WriteHeader(status int) {
	if v.status == 0 {
		v.status = status
	}
	v.ResponseWriter.WriteHeader(status)
}

func (v *visit) Write(p []byte) (int, error) {
	if v.status == 0 {
		v.status = http.StatusOK
	}
	return v.ResponseWriter.Write(p)
}
