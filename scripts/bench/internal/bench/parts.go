package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
)

// partsInFlight is how many episodes of the parts are in play at once: enough for two processors, with little waiting.
const partsInFlight = 16

// parts measures each stage in each round, so that all of them see the same weather.
func (d *driver) parts(ctx context.Context) error {
	all, err := d.serve(ctx, partsInFlight)
	if err != nil {
		return err
	}
	defer all.Close()
	for _, stage := range Stages {
		if why := unfit(stage); why != "" {
			d.missing("stage %s: %s", stage.Name, why)
			continue
		}
		d.report.Parts = append(d.report.Parts, StageResult{Stage: stage, Episodes: d.episodes(stage)})
	}
	for round := range d.Rounds {
		for i := range d.report.Parts {
			stage := d.report.Parts[i].Name
			if err := d.part(ctx, all, &d.report.Parts[i]); err != nil {
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

// unfit says why a stage cannot be played here; "" when it can.
func unfit(stage Stage) string {
	switch {
	case stage.Sandbox == "native" && runtime.GOOS != "linux":
		return "native sandboxes are of Linux alone"
	case stage.NoCgroups && !privileged():
		return "to take the cgroups away needs root"
	}
	return ""
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

// part plays a stage twice, with many episodes and with a tenth of them, and takes the difference.
func (d *driver) part(ctx context.Context, all servers, result *StageResult) error {
	setup := Setup{Episodes: result.Episodes, InFlight: partsInFlight, Addrs: all.addrs(), DelayedTurn: allTurns}
	small := setup
	small.Episodes /= 10
	less, _, err := d.play(ctx, result.Stage, small)
	if err != nil {
		return err
	}
	if err := all.reset(ctx); err != nil {
		return err
	}
	more, _, err := d.play(ctx, result.Stage, setup)
	if err != nil {
		return err
	}
	counts, err := all.counts(ctx)
	if err != nil {
		return err
	}
	if want := int64(setup.Episodes * turns(result.Script)); counts.Requests != want {
		return fmt.Errorf("%d requests, and not %d: what was measured is not what was meant", counts.Requests, want)
	}
	result.RequestKBPerEp = float64(counts.Bytes) / 1024 / float64(setup.Episodes)
	result.MemoryIs = more.MemoryIs
	n := float64(setup.Episodes - small.Episodes)
	each := (more.CPUMS - less.CPUMS) / n
	result.Each = append(result.Each, Round{
		EpisodesPerS: ratio(n, more.WallS-less.WallS), CPUMSPerEpisode: each, CgroupCPUMS: (more.CgroupCPUMS - less.CgroupCPUMS) / n,
		PeakMB: more.PeakMB, StartupCPUMS: less.CPUMS - each*float64(small.Episodes),
	})
	return nil
}

// sum makes medians of the rounds. A ratio is the median of those of the rounds.
func (r *Report) sum(s *StageResult) {
	s.EpisodesPerS = median(s.Each, func(e Round) float64 { return e.EpisodesPerS })
	s.CPUMSPerEpisode = median(s.Each, cpuOf)
	s.CgroupCPUMS = median(s.Each, func(e Round) float64 { return e.CgroupCPUMS })
	s.PeakMB = median(s.Each, func(e Round) float64 { return e.PeakMB })
	s.StartupCPUMS = median(s.Each, func(e Round) float64 { return e.StartupCPUMS })
	s.CPUSpread = ratio(cpuOf(slices.MaxFunc(s.Each, byCPU)), cpuOf(slices.MinFunc(s.Each, byCPU)))
	limit := r.stage(s.Against)
	if limit == nil {
		return
	}
	var cpu, rate []float64
	for i, e := range s.Each {
		cpu = append(cpu, ratio(e.CPUMSPerEpisode, limit.Each[i].CPUMSPerEpisode))
		rate = append(rate, ratio(e.EpisodesPerS, limit.Each[i].EpisodesPerS))
	}
	itself := func(v float64) float64 { return v }
	s.CPURatio, s.RateRatio = median(cpu, itself), median(rate, itself)
}

func cpuOf(e Round) float64 { return e.CPUMSPerEpisode }

func byCPU(a, b Round) int { return cmp.Compare(a.CPUMSPerEpisode, b.CPUMSPerEpisode) }
