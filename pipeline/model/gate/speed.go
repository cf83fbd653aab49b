package gate

import (
	"math"
	"slices"
	"time"
)

const (
	// collapse is how many times slower than usual a server is that may have too much to do.
	collapse = 2.0
	// gain is what the server's output must have grown by to be worth it. A batch makes each reply slower and all of
	// them together faster.
	gain   = 1.1
	relief = 0.8 // share of the limit that stays after a collapse
	fewest = 8   // replies that a median needs
)

// speed watches how long a server takes for its work: the time of a request by the tokens that it was, so that a long
// reply is no slow one.
type speed struct {
	recent   []float64 // since the last judgement
	inFlight float64   // summed over recent
	since    time.Time
	usual    float64
	output   [64]float64 // of the server, by twice the binary logarithm of the requests in flight
}

// judge takes a reply and tells whether the server has more to do than does it good. It judges once in a round.
func (s *speed) judge(now time.Time, inFlight int, r Result, round time.Duration) bool {
	const fixed, most = 20, 256 // tokens' worth of time that each request takes, however short; replies of a median
	if r.Latency <= 0 {
		return false
	}
	if len(s.recent) == 0 {
		s.since = now
	}
	if len(s.recent) < most {
		s.recent = append(s.recent, r.Latency.Seconds()/(max(r.Work, 0)+fixed))
		s.inFlight += float64(inFlight)
	}
	if len(s.recent) < fewest || now.Sub(s.since) < round {
		return false
	}
	slices.Sort(s.recent)
	median, mean := s.recent[len(s.recent)/2], s.inFlight/float64(len(s.recent))
	s.recent, s.inFlight = s.recent[:0], 0
	output := mean / median
	step := min(int(2*math.Log2(mean)), len(s.output)-1)
	less := slices.Max(s.output[:max(step-1, 1)]) // with less in flight by a third at least
	for i := range s.output {
		s.output[i] *= 0.995 // what was long ago counts less
	}
	s.output[step] = output
	switch {
	case s.usual == 0 || median < s.usual:
		s.usual = median
	case median > collapse*s.usual && output < gain*less:
		s.usual *= 1.1 // a server that stays slow is not cut for ever
		return true
	default:
		s.usual += 0.01 * (median - s.usual)
	}
	return false
}
