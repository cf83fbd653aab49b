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
	SchedP99MS      float64 `json:"sched_p99_ms"`
}

// mostInFlight is what the target is about.
const mostInFlight = 50_000

func (d *driver) flight(ctx context.Context) error {
	for _, inFlight := range []int{100, 1000, 10_000, mostInFlight} {
		if inFlight > d.size(mostInFlight, 1000, 100) {
			break
		}
		for _, delay := range []int{500, 2000} {
			if err := d.fly(ctx, inFlight, time.Duration(d.size(delay, delay, delay/20))*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *driver) fly(ctx context.Context, inFlight int, delay time.Duration) (err error) {
	// Where a process may not open as many files, some episodes wait for a connection.
	sent := min(inFlight, connections())
	f := Flight{InFlight: inFlight, Sent: sent, DelayS: delay.Seconds(), IdealPS: float64(sent) / delay.Seconds()}
	setup := Setup{Episodes: inFlight, InFlight: inFlight, Delay: delay, DelayedTurn: allTurns}
	if f.Limit, err = d.pace(ctx, stage("limit-noop"), setup); err != nil {
		return err
	}
	if f.Trajgen, err = d.pace(ctx, stage("noop"), setup); err != nil {
		return err
	}
	f.RateRatio = ratio(f.Trajgen.RequestsPerS, min(f.IdealPS, f.Limit.RequestsPerS))
	d.logf("flight: %d at %s: %.0f requests/s, the limit %.0f, ideal %.0f", inFlight, delay, f.Trajgen.RequestsPerS, f.Limit.RequestsPerS, f.IdealPS)
	d.report.Flight = append(d.report.Flight, f)
	return nil
}

func (p *player) pace(ctx context.Context, s Stage, setup Setup) (Pace, error) {
	m, played, err := p.play(ctx, s, setup)
	if err != nil {
		return Pace{}, err
	}
	counts := p.server.Counts()
	pace := Pace{
		RequestsPerS: float64(counts.Requests) / played.Seconds, CPUMSPerEpisode: m.CPUMS / float64(setup.Episodes), PeakMB: m.PeakMB, SchedP99MS: played.SchedP99MS,
	}
	if len(counts.Early) == early {
		pace.First1000S = counts.Early[early-1].Sub(counts.Early[0]).Seconds()
	}
	return pace, nil
}
