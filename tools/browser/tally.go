package browser

import "sync"

// Counts is what a browser did during a call.
type Counts struct {
	Requests int `json:"requests"`
	Blocked  int `json:"blocked,omitempty"` // requests that the gate refused
	Misses   int `json:"misses,omitempty"`  // requests that the recording, or the corpus, lacks
	Dialogs  int `json:"dialogs,omitempty"`
	Crashes  int `json:"crashes,omitempty"` // of pages
	// Unrecordable are attempts at what the gate does not see: web sockets, web transports and service workers.
	Unrecordable int `json:"unrecordable,omitempty"`
	Bytes        int `json:"bytes,omitempty"` // of bodies that were answered to pages
}

// tally counts for the call that goes on, or for the next one.
type tally struct {
	mu     sync.Mutex
	counts Counts
}

func (t *tally) add(change func(*Counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.counts)
}

// take returns what was counted since the last time.
func (t *tally) take() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	t.counts = Counts{}
	return c
}
