package registry

import "slices"

// CalledBetween tells whether the model itself called another tool than those named, from turn from on and before turn
// to. Turns before the current one have ended, so that the answer is the same however the calls of a turn interleave.
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
