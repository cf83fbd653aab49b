package bench

import "context"

// ScaleResult is how costs grow.
type ScaleResult struct {
	Workers []Workers `json:"workers,omitempty"`
	Growth  []Growth  `json:"growth"`
}

// Workers is the whole pipeline with so many episodes in play.
type Workers struct {
	Workers int `json:"workers"`
	Round
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
	if why := stage("full").unfit(); why != "" {
		d.missing("workers: %s", why)
	} else if err := d.workers(ctx); err != nil {
		return err
	}
	return d.growth(ctx)
}

func (d *driver) workers(ctx context.Context) error {
	for workers := 1; workers <= d.size(64, 64, 2); workers *= 2 {
		each, err := d.difference(ctx, stage("full"), Setup{Episodes: d.size(200, 40, 10), InFlight: workers})
		if err != nil {
			return err
		}
		d.report.Scale.Workers = append(d.report.Scale.Workers, Workers{workers, each})
		d.logf("scale: %d workers, %.0f episodes/s", workers, each.EpisodesPerS)
	}
	return nil
}

func (d *driver) growth(ctx context.Context) error {
	for rows := d.size(1000, 1000, 100); rows <= d.size(1_000_000, 10_000, 100); rows *= 10 {
		m, played, err := d.play(ctx, kept, Setup{Episodes: rows, InFlight: 64})
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
