package registry

import "slices"

// CalledBetween reports whether the model itself called a tool other than those named, in the turns from from up to, but not
// including, to. These turns have ended, so the result does not depend on how the calls of a turn interleave.
func (s *Session) CalledBetween(from, to int, names ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.calls) - 1; i >= 0; i-- {
		p := s.calls[i]
		switch {
		case !p.done || p.call.Turn >= to:
		case p.call.Turn < from:
			return false
		case !slices.Contains(names, p.call.Name):
			return true
		}
	}
	return false
}

// Forget records that the model no longer sees the results of calls before a turn, as its conversation was shortened.
func (s *Session) Forget(before int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten = max(s.forgotten, before)
}

// Shows reports whether the model still sees the whole result of one of its own calls: the call has ended, its result was not cut,
// and it was not forgotten.
func (s *Session) Shows(turn int, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if turn < s.forgotten {
		return false
	}
	shown := false
	for i := len(s.calls) - 1; i >= 0; i-- {
		switch p := s.calls[i]; {
		case !p.done || p.call.Turn > turn:
		case p.call.Turn < turn:
			return shown
		case p.call.ID == id:
			if p.call.Truncated {
				return false
			}
			shown = true
		}
	}
	return shown
}
