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
	MemoryIs string  `json:"memory_is"`
}

// Waiting is many episodes that wait for their first reply.
type Waiting struct {
	InFlight    int     `json:"in_flight"`
	PromptBytes int     `json:"prompt_bytes"`
	PeakMB      float64 `json:"peak_mb"`
	BaseMB      float64 `json:"base_mb"` // with a hundredth of them in flight
	KBEach      float64 `json:"kb_each"`
	AllWaiting  bool    `json:"all_waiting"` // at once
	MemoryIs    string  `json:"memory_is"`
}

// patience is a delay that is not made longer, however slow the machine.
const patience = 2 * time.Minute

func (d *driver) memory(ctx context.Context) (err error) {
	d.report.Memory = &MemoryResult{}
	full, err := FindStage("full")
	if err != nil {
		return err
	}
	if why := unfit(full); why != "" {
		d.missing("memory with live sandboxes: %s", why)
	} else if d.report.Memory.Live, err = d.live(ctx, full); err != nil {
		return err
	}
	d.report.Memory.Waiting, err = d.waiting(ctx)
	return err
}

// live keeps back the second reply of every episode until all have opened their sandbox for the first call.
func (d *driver) live(ctx context.Context, full Stage) (*Live, error) {
	n := d.size(1000, 100, 20)
	all, err := d.serve(ctx, n)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	base, _, err := d.play(ctx, full, Setup{Episodes: partsInFlight, InFlight: partsInFlight, Addrs: all.addrs(), DelayedTurn: allTurns})
	if err != nil {
		return nil, err
	}
	// A slow machine takes its time to open them.
	for delay := time.Duration(n) * 30 * time.Millisecond; ; delay *= 3 {
		if err := all.reset(ctx); err != nil {
			return nil, err
		}
		m, _, err := d.play(ctx, full, Setup{Episodes: n, InFlight: n, Addrs: all.addrs(), Delay: delay, DelayedTurn: 1})
		if err != nil {
			return nil, err
		}
		counts, err := all.counts(ctx)
		if err != nil {
			return nil, err
		}
		// Each has asked twice before the first gets its second reply.
		result := &Live{InFlight: n, PeakMB: m.PeakMB, BaseMB: base.PeakMB, AllAlive: counts.before(delay) >= int64(2*n), MemoryIs: m.MemoryIs}
		d.logf("memory: %d live sandboxes, peak %.0f MB (all at once: %t)", n, m.PeakMB, result.AllAlive)
		if result.AllAlive || delay > patience {
			return result, nil
		}
	}
}

// waiting keeps back the only reply of every episode until all have asked.
func (d *driver) waiting(ctx context.Context) (*Waiting, error) {
	const history = 2048
	n := min(d.size(10_000, 2000, 200), connections())
	stage, err := FindStage("answer")
	if err != nil {
		return nil, err
	}
	all, err := d.serve(ctx, n)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	few := max(1, n/100)
	setup := Setup{Episodes: few, InFlight: few, Addrs: all.addrs(), Delay: time.Second, DelayedTurn: allTurns, PromptBytes: history - len(system)}
	base, _, err := d.play(ctx, stage, setup)
	if err != nil {
		return nil, err
	}
	setup.Episodes, setup.InFlight = n, n
	for setup.Delay = time.Duration(d.size(20, 5, 1)) * time.Second; ; setup.Delay *= 3 {
		if err := all.reset(ctx); err != nil {
			return nil, err
		}
		m, _, err := d.play(ctx, stage, setup)
		if err != nil {
			return nil, err
		}
		counts, err := all.counts(ctx)
		if err != nil {
			return nil, err
		}
		w := &Waiting{
			InFlight: n, PromptBytes: setup.PromptBytes, PeakMB: m.PeakMB, BaseMB: base.PeakMB, KBEach: 1024 * (m.PeakMB - base.PeakMB) / float64(n-few),
			AllWaiting: counts.before(setup.Delay) >= int64(n), MemoryIs: m.MemoryIs,
		}
		d.logf("memory: %d waiting, %.1f KB each (all at once: %t)", n, w.KBEach, w.AllWaiting)
		if w.AllWaiting || setup.Delay > patience {
			return w, nil
		}
	}
}
