package scripted

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Latency is how long a reply takes before its first byte. The zero value is at once.
type Latency struct {
	Min, Max time.Duration // anything between, each as likely
	Median   time.Duration // with Sigma: lognormal, cut at a hundred times the median
	Sigma    float64
}

// ParseLatency reads a constant such as 2s, a range such as 1s-3s, or lognormal:2s,0.5 with median and sigma.
func ParseLatency(spec string) (Latency, error) {
	var l Latency
	var err error
	if rest, ok := strings.CutPrefix(spec, "lognormal:"); ok {
		median, sigma, _ := strings.Cut(rest, ",")
		if l.Median, err = time.ParseDuration(strings.TrimSpace(median)); err == nil {
			l.Sigma, err = strconv.ParseFloat(strings.TrimSpace(sigma), 64)
		}
		if err == nil && l.Median == 0 {
			err = errors.New("no median")
		}
	} else {
		l.Min, l.Max, err = parseRange(spec)
	}
	if err != nil || l.check() != nil {
		return Latency{}, fmt.Errorf("latency %q (want e.g. 2s, 1s-3s or lognormal:2s,0.5)", spec)
	}
	return l, nil
}

func (l Latency) check() error {
	if l.Min < 0 || l.Max < l.Min || l.Median < 0 || !(l.Sigma >= 0 && l.Sigma <= 5) {
		return fmt.Errorf("latency %+v (want 0 <= min <= max, median 0 or more, sigma 0 to 5)", l)
	}
	return nil
}

// latency is how long this request takes: a function of the seed and of the request, and not of chance.
func (c *Config) latency(key [32]byte) time.Duration {
	const tail = 100
	l := c.Latency
	if l == (Latency{Min: l.Min, Max: l.Min}) {
		return c.Delay + l.Min
	}
	draw := rand.New(rand.NewChaCha8(hash("latency", strconv.FormatUint(c.Seed, 10), string(key[:]))))
	if l.Median > 0 {
		return c.Delay + time.Duration(float64(l.Median)*min(tail, math.Exp(l.Sigma*draw.NormFloat64())))
	}
	return c.Delay + l.Min + time.Duration(draw.Int64N(int64(l.Max-l.Min)+1))
}

// generation is how long it takes to write so many tokens.
func (c *Config) generation(tokens int) time.Duration {
	if c.Speed == 0 {
		return 0
	}
	return inSeconds(float64(tokens) / c.Speed)
}
