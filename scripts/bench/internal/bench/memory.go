package bench

import (
	"context"
	"time"
)

// MemoryResult is what episodes in flight hold.
type MemoryResult struct {
	Live    *Live    `json:"live,omitempty"`
	Waiting *Waiting `json:"waiting,omitempty"`
}

// Live is many episodes whose sandboxes are open, all at once.
type Live struct {
	InFlight int     `json:"in_flight"`
	PeakMB   float64 `json:"peak_mb"`   // of runner and broker, from the start of the run to its report
	BaseMB   float64 `json:"base_mb"`   // the same with 16 in flight
	AllAlive bool    `json:"all_alive"` // at once
}

// Waiting is many episodes that wait for their first reply.
type Waiting struct {
	InFlight    int     `json:"in_flight"`
	PromptBytes int     `json:"prompt_bytes"`
	PeakMB      float64 `json:"peak_mb"`
	BaseMB      float64 `json:"base_mb"` // with a hundredth of them in flight
	KBEach      float64 `json:"kb_each"`
	AllWaiting  bool    `json:"all_waiting"` // at once
}

func (d *driver) memory(ctx context.Context) (err error) {
	d.report.Memory = &MemoryResult{}
	if why := stage("full").unfit(); why != "" {
		d.missing("memory with live sandboxes: %s", why)
	} else if d.report.Memory.Live, err = d.live(ctx); err != nil {
		return err
	}
	d.report.Memory.Waiting, err = d.waiting(ctx)
	return err
}

// live keeps back the second reply of every episode until all have opened their sandbox for the first call.
func (d *driver) live(ctx context.Context) (*Live, error) {
	n := d.size(1000, 100, 20)
	base, _, err := d.play(ctx, stage("full"), Setup{Episodes: partsInFlight, InFlight: partsInFlight})
	if err != nil {
		return nil, err
	}
	// A slow machine takes its time to open them.
	setup := Setup{Episodes: n, InFlight: n, Delay: time.Duration(n) * 30 * time.Millisecond, DelayedTurn: 1}
	m, all, err := d.together(ctx, stage("full"), setup)
	d.logf("memory: %d live sandboxes, peak %.0f MB (all at once: %t)", n, m.PeakMB, all)
	return &Live{InFlight: n, PeakMB: m.PeakMB, BaseMB: base.PeakMB, AllAlive: all}, err
}

// waiting keeps back the only reply of every episode until all have asked.
func (d *driver) waiting(ctx context.Context) (*Waiting, error) {
	const history = 2048
	n := min(d.size(10_000, 2000, 200), connections())
	few := max(1, n/100)
	setup := Setup{Episodes: few, InFlight: few, Delay: time.Second, DelayedTurn: allTurns, PromptBytes: history - len(system)}
	base, _, err := d.play(ctx, stage("answer"), setup)
	if err != nil {
		return nil, err
	}
	setup.Episodes, setup.InFlight, setup.Delay = n, n, time.Duration(d.size(20, 5, 1))*time.Second
	m, all, err := d.together(ctx, stage("answer"), setup)
	w := &Waiting{
		InFlight: n, PromptBytes: setup.PromptBytes, PeakMB: m.PeakMB, BaseMB: base.PeakMB, KBEach: 1024 * (m.PeakMB - base.PeakMB) / float64(n-few), AllWaiting: all,
	}
	d.logf("memory: %d waiting, %.1f KB each (all at once: %t)", n, w.KBEach, w.AllWaiting)
	return w, err
}

// together plays a stage with longer and longer delays, until all episodes wait for a delayed reply at once.
func (p *player) together(ctx context.Context, s Stage, setup Setup) (m Measurement, all bool, err error) {
	const patience = 2 * time.Minute // a delay that is not made longer, however slow the machine
	for ; ; setup.Delay *= 3 {
		if m, _, err = p.play(ctx, s, setup); err != nil {
			return m, false, err
		}
		if all = p.server.Counts().Peak >= setup.InFlight; all || setup.Delay > patience {
			return m, all, nil
		}
	}
}
