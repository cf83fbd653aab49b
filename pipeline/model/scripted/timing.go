package scripted

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// latency is how long a reply takes before its first byte: anything between min and max, each as likely, or lognormal
// where there is a median.
type latency struct {
	min, max, median time.Duration
	sigma            float64
}

func parseLatency(spec string) (latency, error) {
	var l latency
	var err error
	rest, lognormal := strings.CutPrefix(spec, "lognormal:")
	switch {
	case lognormal:
		median, sigma, _ := strings.Cut(rest, ",")
		var err2 error
		l.median, err = time.ParseDuration(strings.TrimSpace(median))
		l.sigma, err2 = strconv.ParseFloat(strings.TrimSpace(sigma), 64)
		err = errors.Join(err, err2)
	case spec != "":
		l.min, l.max, err = parseRange(spec)
	}
	if err != nil || l.min < 0 || l.max < l.min || lognormal && l.median <= 0 || !(l.sigma >= 0 && l.sigma <= 5) {
		return latency{}, fmt.Errorf("latency %q (want e.g. 2s, 1s-3s or lognormal:2s,0.5)", spec)
	}
	return l, nil
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
	const tail = 100
	l := s.delay
	draw := rand.New(rand.NewChaCha8(hash("latency", strconv.FormatUint(s.cfg.Seed, 10), string(key[:]))))
	if l.median > 0 {
		return time.Duration(float64(l.median) * min(tail, math.Exp(l.sigma*draw.NormFloat64())))
	}
	return l.min + time.Duration(draw.Int64N(int64(l.max-l.min)+1))
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
