package gate

import "time"

// sample is a number of consecutive requests under the same limit. It is complete only when nearly all have ended, as the
// first ones to end are the quick ones.
type sample struct {
	from, most int // number of the last request before it; how many requests it is to have
	sent       int
	began, at  time.Time // when the first and the last of them were sent

	good, refused int
	latency, work float64 // summed over good, in seconds and tokens
}

func (s *sample) send(now time.Time) {
	if s.sent == 0 {
		s.began = now
	}
	s.sent++
	s.at = now
}

func (s *sample) full() bool { return s.sent >= s.most }

// learn takes the result of one of its requests.
func (s *sample) learn(r Result) {
	switch r.Kind {
	case OK:
		s.good++
		s.latency += r.Latency.Seconds()
		s.work += max(r.Work, 0)
	case Limited, Busy, Slow:
		s.refused++
	case Void, Failed:
		s.sent--
	}
}

// over reports whether the sample is complete, and late whether many of its requests take much longer than latency.
func (s *sample) over(now time.Time, latency float64) (over, late bool) {
	ended := s.good + s.refused
	since := func(t time.Time) float64 { return now.Sub(t).Seconds() / latency }
	if s.sent == 0 {
		return false, false
	}
	if since(s.began) > 3 && 2*ended < s.sent {
		return false, true
	}
	if since(s.at) > 2 {
		most := 4*ended >= 3*s.sent
		return most, !most
	}
	return s.full() && ended == s.sent, false
}

// means returns the average latency and work of a good reply.
func (s *sample) means() (latency, work float64) {
	n := max(float64(s.good), 1)
	return s.latency / n, s.work / n
}

func (s *sample) slowness() float64 { return slowness(s.means()) }

// delivered is the number of good replies for each second in which requests were sent.
func (s *sample) delivered() float64 { return float64(s.good) / max(s.at.Sub(s.began).Seconds(), 1e-9) }
