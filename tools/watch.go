package tools

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Bounds of a background process's notifications.
const (
	maxPending = 20   // matches that wait to be reported; more are counted
	maxWatched = 4096 // bytes of a line that are searched
)

// notification is an event of a background process, which process calls report once.
type notification struct {
	SessionID  string `json:"session_id"`
	Type       string `json:"type"` // completed or watch_match
	ExitCode   *int   `json:"exit_code,omitempty"`
	Pattern    string `json:"pattern,omitempty"`
	Line       string `json:"line,omitempty"`
	Suppressed int    `json:"suppressed,omitempty"` // further matches that were not kept
}

// watcher looks for patterns in the lines of a process's output.
type watcher struct {
	patterns []string

	mu         sync.Mutex // guards the rest
	line       []byte     // the present one so far
	matched    bool       // the present line matched
	matches    []notification
	suppressed int
	wake       func() // called at a match; nil while no call waits
}

func newWatcher(patterns []string) *watcher {
	return &watcher{patterns: slices.DeleteFunc(slices.Clone(patterns), func(pattern string) bool { return pattern == "" })}
}

// see receives clean output. It also searches a line that has not ended: it may be a prompt.
func (w *watcher) see(text []byte) {
	if len(w.patterns) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(text) > 0 {
		part, rest, ended := bytes.Cut(text, []byte("\n"))
		w.line = append(w.line, part[:min(len(part), maxWatched-len(w.line))]...)
		if !w.matched {
			w.matched = slices.ContainsFunc(w.patterns, w.match)
		}
		if ended {
			w.line, w.matched = w.line[:0], false
		}
		text = rest
	}
}

// match reports whether the line has a pattern, and keeps the match.
func (w *watcher) match(pattern string) bool {
	switch {
	case !bytes.Contains(w.line, []byte(pattern)):
		return false
	case len(w.matches) == maxPending:
		w.suppressed++
		return true
	}
	line := strings.TrimRight(strings.ToValidUTF8(string(w.line), "\uFFFD"), " \t\r")
	w.matches = append(w.matches, notification{Type: "watch_match", Pattern: pattern, Line: line})
	if w.wake != nil {
		w.wake()
	}
	return true
}

// take returns the unreported matches.
func (w *watcher) take(id string) []notification {
	w.mu.Lock()
	defer w.mu.Unlock()
	matches := w.matches
	for i := range matches {
		matches[i].SessionID = id
	}
	if len(matches) > 0 {
		matches[len(matches)-1].Suppressed = w.suppressed
	}
	w.matches, w.suppressed = nil, 0
	return matches
}

// waking makes the next match call wake; an unreported match calls it at once. The returned function ends that.
func (w *watcher) waking(wake func()) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wake = wake; len(w.matches) > 0 {
		wake()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wake = nil
	}
}
