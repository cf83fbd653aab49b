package bench

import (
	"context"
	"strconv"
)

// ScaleResult is how costs grow.
type ScaleResult struct {
	Workers    []Workers  `json:"workers,omitempty"`
	Growth     []Growth   `json:"growth"`
	Registries []Registry `json:"registries"`
	Sandboxes  []Alive    `json:"sandboxes,omitempty"`
}

// Workers is the whole pipeline with so many episodes in play.
type Workers struct {
	Workers         int     `json:"workers"`
	EpisodesPerS    float64 `json:"episodes_per_s"`
	CPUMSPerEpisode float64 `json:"cpu_ms_per_episode"`
	PeakMB          float64 `json:"peak_mb"`
}

// Growth is one run of so many short episodes with the journal, and what each tenth of them cost the runner.
type Growth struct {
	Rows            int       `json:"rows"`
	EpisodesPerS    float64   `json:"episodes_per_s"`
	CPUMSPerEpisode float64   `json:"cpu_ms_per_episode"`
	TenthCPUMS      []float64 `json:"tenth_cpu_ms_per_episode"`
	// LateToEarly is the cost of the last three tenths by that of the second to the fourth: single ones vary by a tenth when
	// nothing changes. The first one has the connections and the heap to make.
	LateToEarly float64 `json:"late_to_early"`
	PeakMB      float64 `json:"peak_mb"`
}

// spend goes by the CPU time that was used at the beginning and after each tenth of the episodes.
func (g *Growth) spend(at []float64) {
	if len(at) != 11 {
		return // too few for tenths
	}
	for i := range 10 {
		g.TenthCPUMS = append(g.TenthCPUMS, (at[i+1]-at[i])/float64(g.Rows/10))
	}
	g.CPUMSPerEpisode = (at[10] - at[0]) / float64(g.Rows)
	g.LateToEarly = ratio(at[10]-at[7], at[4]-at[1])
}

func (d *driver) scale(ctx context.Context) error {
	d.report.Scale = &ScaleResult{}
	for _, part := range []func(context.Context) error{d.workers, d.growth, d.registries, d.alive} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) workers(ctx context.Context) error {
	full, err := FindStage("full")
	if err != nil {
		return err
	}
	if why := unfit(full); why != "" {
		d.missing("workers: %s", why)
		return nil
	}
	all, err := d.serve(ctx, 64)
	if err != nil {
		return err
	}
	defer all.Close()
	for workers := 1; workers <= d.size(64, 64, 2); workers *= 2 {
		setup := Setup{Episodes: d.size(200, 40, 10), InFlight: workers, Addrs: all.addrs(), DelayedTurn: allTurns}
		small := setup
		small.Episodes /= 10
		less, _, err := d.play(ctx, full, small)
		if err != nil {
			return err
		}
		more, _, err := d.play(ctx, full, setup)
		if err != nil {
			return err
		}
		n := float64(setup.Episodes - small.Episodes)
		w := Workers{workers, ratio(n, more.WallS-less.WallS), (more.CPUMS - less.CPUMS) / n, more.PeakMB}
		d.report.Scale.Workers = append(d.report.Scale.Workers, w)
		d.logf("scale: %d workers, %.0f episodes/s", workers, w.EpisodesPerS)
	}
	return nil
}

func (d *driver) growth(ctx context.Context) error {
	all, err := d.serve(ctx, 64)
	if err != nil {
		return err
	}
	defer all.Close()
	for rows := d.size(1000, 1000, 100); rows <= d.size(1_000_000, 10_000, 100); rows *= 10 {
		m, played, err := d.play(ctx, kept, Setup{Episodes: rows, InFlight: 64, Addrs: all.addrs(), DelayedTurn: allTurns})
		if err != nil {
			return err
		}
		g := Growth{Rows: rows, EpisodesPerS: float64(rows) / played.Seconds, PeakMB: m.PeakMB}
		g.spend(played.TenthCPUMS)
		d.report.Scale.Growth = append(d.report.Scale.Growth, g)
		d.logf("scale: %d episodes in one run, %.3f ms each, the last tenths %.2f of the early ones", rows, g.CPUMSPerEpisode, g.LateToEarly)
	}
	return nil
}

func (d *driver) registries(ctx context.Context) error {
	_, err := d.measure(ctx, &d.report.Scale.Registries, false, d.Itself, "registries")
	return err
}

func (d *driver) alive(ctx context.Context) error {
	full, err := FindStage("full")
	if err != nil {
		return err
	}
	if why := unfit(full); why != "" {
		d.missing("live sandboxes: %s", why)
		return nil
	}
	_, err = d.measure(ctx, &d.report.Scale.Sandboxes, false, d.Itself, "sandboxes", "--most", strconv.Itoa(d.size(2000, 100, 3)))
	return err
}
