package export

import "slices"

// inspectSent says in ranges of the pool what the model was sent for one turn after another.
type inspectSent struct {
	*pool
	ranges  [][2]int
	upTo    int
	written int // ranges of all turns
}

// inspectRanges bounds what the model events of a conversation point to that was shortened again and again.
const inspectRanges = 100_000

func (s *inspectSent) refs(turn int) [][2]int {
	if s.written > inspectRanges {
		return [][2]int{}
	}
	end := s.ep.Turns[turn].Message
	if s.shortens[turn] {
		s.ranges, s.upTo = nil, end
		for _, place := range s.sent(turn) {
			s.take(place)
		}
	}
	for ; s.upTo < end; s.upTo++ {
		s.take(s.upTo)
	}
	s.written += len(s.ranges)
	return slices.Clone(s.ranges)
}

// take appends a place of the pool.
func (s *inspectSent) take(place int) {
	if n := len(s.ranges); n > 0 && s.ranges[n-1][1] == place {
		s.ranges[n-1][1]++
		return
	}
	s.ranges = append(s.ranges, [2]int{place, place + 1})
}
