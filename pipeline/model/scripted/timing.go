package scripted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// latency draws how long a reply takes before its first byte.
type latency func(draw *rand.Rand) time.Duration

func parseLatency(spec string) (latency, error) {
	wrong := fmt.Errorf("latency %q (want e.g. 2s, 1s-3s or lognormal:2s,0.5)", spec)
	if rest, ok := strings.CutPrefix(spec, "lognormal:"); ok {
		const tail = 100
		before, behind, _ := strings.Cut(rest, ",")
		median, err := time.ParseDuration(strings.TrimSpace(before))
		sigma, err2 := strconv.ParseFloat(strings.TrimSpace(behind), 64)
		if err != nil || err2 != nil || median <= 0 || !(sigma >= 0 && sigma <= 5) {
			return nil, wrong
		}
		return func(draw *rand.Rand) time.Duration {
			return time.Duration(float64(median) * min(tail, math.Exp(sigma*draw.NormFloat64())))
		}, nil
	}
	from, to, err := parseRange(cmp.Or(spec, "0s"))
	if err != nil || from < 0 || to < from {
		return nil, wrong
	}
	return func(draw *rand.Rand) time.Duration { return from + time.Duration(draw.Int64N(int64(to-from)+1)) }, nil
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

// latency is how long this request takes: a function of the seed and of the request, and not of chance.
func (s *Server) latency(key [32]byte) time.Duration {
	return s.delay(rand.New(rand.NewChaCha8(hash("latency", strconv.FormatUint(s.cfg.Seed, 10), string(key[:])))))
}

// generation is how long it takes to write so many tokens.
func (c *Config) generation(tokens int) time.Duration {
	if c.Speed == 0 {
		return 0
	}
	return inSeconds(float64(tokens) / c.Speed)
}

// inSeconds is so many seconds, rounded up, and no more than fit.
func inSeconds(s float64) time.Duration { return time.Duration(math.Ceil(min(max(0, s), 1e9) * 1e9)) }

// pause waits, and reports whether the client was still there and the server still open.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// outage is one of Config.Outages.
type outage struct {
	from, to time.Duration
	refuse   bool
}

func parseOutage(spec string) (outage, error) {
	window, mode, _ := strings.Cut(spec, ";")
	from, to, err := parseRange(window)
	if err != nil || from < 0 || to <= from || mode != "" && mode != "refuse" {
		return outage{}, fmt.Errorf("outage %q (want e.g. 30s-90s or 30s-90s;refuse)", spec)
	}
	return outage{from: from, to: to, refuse: mode == "refuse"}, nil
}

// outage is the refusal of this moment, if there is one.
func (s *Server) outage() *refusal {
	age := s.load.age()
	for _, o := range s.outages {
		switch {
		case age < o.from || age >= o.to:
		case o.refuse:
			return &refusal{}
		default:
			return unavailable
		}
	}
	return nil
}
