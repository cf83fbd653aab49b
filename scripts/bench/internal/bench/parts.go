package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// partsInFlight is how many episodes of the parts are in play at once: enough for two processors, with little waiting.
const partsInFlight = 16

// parts measures each stage in each round, so that all of them see the same weather.
func (d *driver) parts(ctx context.Context) error {
	for _, stage := range Stages {
		if why := stage.unfit(); why != "" {
			d.missing("stage %s: %s", stage.Name, why)
			continue
		}
		d.report.Parts = append(d.report.Parts, StageResult{Stage: stage, Episodes: d.episodes(stage)})
	}
	for round := range d.Rounds {
		for i := range d.report.Parts {
			stage := d.report.Parts[i].Name
			if err := d.part(ctx, &d.report.Parts[i]); err != nil {
				d.report.Parts = nil // rounds that are not whole compare nothing
				return fmt.Errorf("stage %s, round %d: %w", stage, round+1, err)
			}
		}
		d.logf("parts: round %d of %d", round+1, d.Rounds)
	}
	for i := range d.report.Parts {
		d.report.sum(&d.report.Parts[i])
	}
	return nil
}

// episodes are as many as take a second or two.
func (d *driver) episodes(stage Stage) int {
	switch {
	case stage.Script == scriptAnswer:
		return d.size(10_000, 2000, 20)
	case stage.Sandbox == "" && !stage.Fork:
		return d.size(2000, 400, 20)
	}
	return d.size(200, 60, 10)
}

// part adds a round to a stage.
func (d *driver) part(ctx context.Context, result *StageResult) error {
	each, err := d.difference(ctx, result.Stage, Setup{Episodes: result.Episodes, InFlight: partsInFlight})
	if err != nil {
		return err
	}
	counts := d.server.Counts()
	if want := result.Episodes * turns(result.Script); counts.Requests != want {
		return fmt.Errorf("%d requests, and not %d: what was measured is not what was meant", counts.Requests, want)
	}
	result.RequestKBPerEp = float64(counts.Bytes) / 1024 / float64(result.Episodes)
	result.Each = append(result.Each, each)
	return nil
}

// sum makes medians of the rounds. A ratio is the median of those of the rounds.
func (r *Report) sum(s *StageResult) {
	cpu := func(e Round) float64 { return e.CPUMSPerEpisode }
	byCPU := func(a, b Round) int { return cmp.Compare(cpu(a), cpu(b)) }
	s.EpisodesPerS = median(s.Each, func(e Round) float64 { return e.EpisodesPerS })
	s.CPUMSPerEpisode = median(s.Each, cpu)
	s.PeakMB = median(s.Each, func(e Round) float64 { return e.PeakMB })
	s.CPUSpread = ratio(cpu(slices.MaxFunc(s.Each, byCPU)), cpu(slices.MinFunc(s.Each, byCPU)))
	limit := r.stage(s.Against)
	if limit == nil {
		return
	}
	ratios := make([]Round, len(s.Each))
	for i, e := range s.Each {
		ratios[i] = Round{CPUMSPerEpisode: ratio(cpu(e), cpu(limit.Each[i])), EpisodesPerS: ratio(e.EpisodesPerS, limit.Each[i].EpisodesPerS)}
	}
	s.CPURatio, s.RateRatio = median(ratios, cpu), median(ratios, func(e Round) float64 { return e.EpisodesPerS })
}
