package egress

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Connection is an attempt to reach something outside of a sandbox.
type Connection struct {
	Host     string    `json:"host"`              // requested name, or address
	Port     int       `json:"port"`              // 0 for a name that was refused when it was looked up
	Address  string    `json:"address,omitempty"` // address that was dialled
	Started  time.Time `json:"started"`
	Sent     int64     `json:"sent"`              // bytes that left the sandbox
	Received int64     `json:"received"`          // bytes that came in
	Refused  string    `json:"refused,omitempty"` // why it was not allowed
	Failed   string    `json:"failed,omitempty"`  // why it failed although it was allowed
}

// mostListed is how many attempts are listed. Further ones are only counted.
const mostListed = 10_000

// log lists attempts.
type log struct {
	now func() time.Time

	mu      sync.Mutex // guards what follows
	records []*record
	more    int
	refused map[string]bool // names that are listed as refused
}

// record is a Connection that may still be open.
type record struct {
	mu             sync.Mutex // guards c without the counts
	c              Connection
	sent, received atomic.Int64
}

func newLog(now func() time.Time) *log { return &log{now: now, refused: map[string]bool{}} }

// add lists an attempt that begins now.
func (l *log) add(c Connection) *record {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Started = l.now()
	r := &record{c: c}
	if len(l.records) < mostListed {
		l.records = append(l.records, r)
	} else {
		l.more++
	}
	return r
}

// refuseName lists a refused name once: programs ask several times.
func (l *log) refuseName(name, reason string) {
	l.mu.Lock()
	known := l.refused[name]
	if !known && len(l.refused) < mostListed {
		l.refused[name] = true
	}
	l.mu.Unlock()
	if !known {
		l.add(Connection{Host: name, Refused: reason})
	}
}

func (r *record) refuse(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Refused = reason
}

func (r *record) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c.Failed == "" {
		r.c.Failed = err.Error()
	}
}

func (r *record) reached(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Address = address
}

// all returns the list, with a last entry without a host when there were more attempts.
func (l *log) all() []Connection {
	l.mu.Lock()
	records, more := slices.Clone(l.records), l.more
	l.mu.Unlock()
	list := make([]Connection, 0, len(records)+1)
	for _, r := range records {
		r.mu.Lock()
		c := r.c
		r.mu.Unlock()
		c.Sent, c.Received = r.sent.Load(), r.received.Load()
		list = append(list, c)
	}
	if more > 0 {
		list = append(list, Connection{Failed: fmt.Sprintf("%d more attempts are not listed", more)})
	}
	return list
}
