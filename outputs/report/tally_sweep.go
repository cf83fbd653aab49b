package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// sweepTally counts the episodes that were played with the same settings of the model.
type sweepTally struct {
	sampling episode.Sampling
	first    int // the least of their samples, which orders combinations as the run file has them
	episodes int
	outcomes counter[episode.Outcome]
	verdicts verdicts
}

// sweeps are the tallies by their settings.
type sweeps map[string]*sweepTally

func (s *sweeps) add(ep *episode.Episode) {
	t := tallyOf(s, ep.Sampling.String())
	if t.episodes == 0 {
		t.sampling, t.first = ep.Sampling, ep.Key.Sample
		t.sampling.Model, t.sampling.ReasoningEffort = kept(t.sampling.Model), kept(t.sampling.ReasoningEffort)
	}
	t.first = min(t.first, ep.Key.Sample)
	t.episodes++
	t.outcomes.add(ep.Outcome)
	t.verdicts.add(ep)
}

// list is empty unless settings differ between episodes.
func (s sweeps) list() []SweepGroup {
	list := []SweepGroup{}
	if len(s) < 2 {
		return list
	}
	for name, t := range s {
		list = append(list, SweepGroup{
			Name: name, Sampling: t.sampling, Episodes: t.episodes,
			Outcomes: slices.DeleteFunc(outcomeCounts(t.outcomes), func(o OutcomeCount) bool { return o.Count == 0 }),
			Reward:   t.verdicts.reward.Estimate(), SuccessRate: t.verdicts.success.Estimate(),
		})
	}
	slices.SortFunc(list, func(a, b SweepGroup) int {
		return cmp.Or(cmp.Compare(s[a.Name].first, s[b.Name].first), cmp.Compare(a.Name, b.Name))
	})
	for i, g := range list {
		var parts []string
		for _, setting := range settings(g, list) {
			parts = append(parts, setting[0]+"="+setting[1])
		}
		list[i].Name = strings.Join(parts, " ")
	}
	return list
}

// settings are the names and values that tell a group from the others.
func settings(g SweepGroup, all []SweepGroup) (settings [][2]string) {
	for i, value := range g.Sampling.Values() {
		differs := func(other SweepGroup) bool { return other.Sampling.Values()[i] != value }
		if slices.ContainsFunc(all, differs) {
			settings = append(settings, [2]string{value[0], cmp.Or(value[1], "(none)")})
		}
	}
	return settings
}

// sweepTable shows what became of each combination: a column for each setting that differs, so that the values can be
// read where there is little room.
func (r *Report) sweepTable() table {
	t := table{title: "sweep", head: []string{""}, wide: true}
	for i, g := range r.Sweep {
		cells := []string{strconv.Itoa(i + 1)}
		for _, setting := range settings(g, r.Sweep) {
			cells = append(cells, setting[1])
			if i == 0 {
				t.head = append(t.head, setting[0])
			}
		}
		var counts []Count
		for _, o := range g.Outcomes {
			counts = append(counts, Count{string(o.Outcome), o.Count})
		}
		t.add(false, append(cells, Thousands(g.Episodes), number(g.Reward.Mean, decimal),
			number(g.SuccessRate.Mean, percent), intervalText(g.SuccessRate, percent), countsText(counts))...)
	}
	t.head = append(t.head, "episodes", "reward", "success", "95 % interval", "outcomes")
	return t
}
