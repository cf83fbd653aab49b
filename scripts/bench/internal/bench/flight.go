package bench

import (
	"context"
	"time"
)

// Flight is so many episodes in flight at a server that takes its time: trajgen with no-op tools and no journal, and the
// limit loop, one after the other. All episodes begin at once, and each asks five times.
type Flight struct {
	InFlight int     `json:"in_flight"`
	Sent     int     `json:"requests_in_flight"` // at most: each is an open file
	DelayS   float64 `json:"delay_s"`
	IdealPS  float64 `json:"ideal_requests_per_s"` // what the delay alone allows
	Limit    Pace    `json:"limit"`
	Trajgen  Pace    `json:"trajgen"`
	// RateRatio is trajgen's rate to the least of what the delay allows and what the limit loop reached, on the same
	// processors with the same server.
	RateRatio float64 `json:"rate_ratio"`
}

// Pace is how fast it went.
type Pace struct {
	RequestsPerS    float64 `json:"requests_per_s"` // from the first to the end of the last
	First1000S      float64 `json:"first_1000_s"`   // from the first request to the thousandth; 0 when there were fewer
	CPUMSPerEpisode float64 `json:"cpu_ms_per_episode"`
	PeakMB          float64 `json:"peak_mb"`
	Waits
}

// mostInFlight is what the target is about.
const mostInFlight = 50_000

func (d *driver) flight(ctx context.Context) error {
	for _, inFlight := range d.sizes() {
		for _, delay := range []int{500, 2000} {
			if err := d.fly(ctx, inFlight, time.Duration(d.size(delay, delay, delay/20))*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// sizes are how many episodes are in flight. Where a process may not open as many files, some of them wait for a connection.
func (d *driver) sizes() []int {
	var sizes []int
	for _, n := range []int{100, 1000, 10_000, mostInFlight} {
		if n <= d.size(mostInFlight, 1000, 100) {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

func (d *driver) fly(ctx context.Context, inFlight int, delay time.Duration) error {
	all, err := d.serve(ctx, inFlight)
	if err != nil {
		return err
	}
	defer all.Close()
	sent := min(inFlight, connections())
	f := Flight{InFlight: inFlight, Sent: sent, DelayS: delay.Seconds(), IdealPS: float64(sent) / delay.Seconds()}
	setup := Setup{Episodes: inFlight, InFlight: inFlight, Addrs: all.addrs(), Delay: delay, DelayedTurn: allTurns}
	for _, one := range []struct {
		stage string
		pace  *Pace
	}{{"limit-noop", &f.Limit}, {"noop", &f.Trajgen}} {
		stage, err := FindStage(one.stage)
		if err != nil {
			return err
		}
		if err := all.reset(ctx); err != nil {
			return err
		}
		m, played, err := d.play(ctx, stage, setup)
		if err != nil {
			return err
		}
		counts, err := all.counts(ctx)
		if err != nil {
			return err
		}
		*one.pace = Pace{RequestsPerS: float64(counts.Requests) / played.Seconds, CPUMSPerEpisode: m.CPUMS / float64(inFlight), PeakMB: m.PeakMB, Waits: played.Waits}
		if len(counts.EarlyNS) == early {
			one.pace.First1000S = time.Duration(counts.EarlyNS[early-1] - counts.EarlyNS[0]).Seconds()
		}
	}
	f.RateRatio = ratio(f.Trajgen.RequestsPerS, min(f.IdealPS, f.Limit.RequestsPerS))
	d.logf("flight: %d at %s: %.0f requests/s, the limit %.0f, ideal %.0f", inFlight, delay, f.Trajgen.RequestsPerS, f.Limit.RequestsPerS, f.IdealPS)
	d.report.Flight = append(d.report.Flight, f)
	return nil
}
