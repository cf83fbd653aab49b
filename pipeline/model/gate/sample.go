package gate

import "time"

// sample is some requests that are sent one after the other under the same limit. Nothing is concluded before nearly all of
// them have ended, as the first ones to end are the quick ones.
type sample struct {
	from, most int // number of the last request before it; requests that it is to have
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

// over says whether all have ended, or all that will; late, whether many take long.
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

// means are the latency of a good reply and its work.
func (s *sample) means() (latency, work float64) {
	n := max(float64(s.good), 1)
	return s.latency / n, s.work / n
}

func (s *sample) slowness() float64 { return slowness(s.means()) }

// delivered is how many good replies came for each second in which requests were sent.
func (s *sample) delivered() float64 { return float64(s.good) / max(s.at.Sub(s.began).Seconds(), 1e-9) }
