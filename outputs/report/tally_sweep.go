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
	sampling        episode.Sampling
	first           int // the least of their samples, which orders combinations as the run file has them
	episodes        int
	outcomes        map[episode.Outcome]int
	reward, success sample
}

// sweeps are the tallies by their settings.
type sweeps map[string]*sweepTally

func (s sweeps) add(ep *episode.Episode) {
	name := ep.Sampling.String()
	t := s[name]
	if t == nil {
		t = &sweepTally{sampling: ep.Sampling, first: ep.Key.Sample, outcomes: make(map[episode.Outcome]int)}
		t.sampling.Model, t.sampling.ReasoningEffort = kept(t.sampling.Model), kept(t.sampling.ReasoningEffort)
		s[kept(name)] = t
	}
	t.first = min(t.first, ep.Key.Sample)
	t.episodes++
	t.outcomes[kept(ep.Outcome)]++
	verdict(ep, kept(ep.Key.Task), &t.reward, &t.success)
}

// list is empty unless settings differ between episodes.
func (s sweeps) list() []SweepGroup {
	list := []SweepGroup{}
	if len(s) < 2 {
		return list
	}
	names := make([]string, 0, len(s))
	for name := range s {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(s[a].first, s[b].first), cmp.Compare(a, b)) })
	samplings := make([]episode.Sampling, len(names))
	for i, name := range names {
		samplings[i] = s[name].sampling
	}
	differ := varied(samplings)
	for _, name := range names {
		t := s[name]
		g := SweepGroup{Name: label(t.sampling, differ), Sampling: t.sampling, Episodes: t.episodes, Reward: t.reward.estimate(), SuccessRate: t.success.estimate()}
		for _, outcome := range episode.Outcomes() {
			if n := t.outcomes[outcome]; n > 0 {
				g.Outcomes = append(g.Outcomes, OutcomeCount{outcome, n})
			}
		}
		list = append(list, g)
	}
	return list
}

// varied says of each setting whether it differs.
func varied(samplings []episode.Sampling) []bool {
	differ := make([]bool, len(samplings[0].Values()))
	for _, sampling := range samplings {
		for i, value := range sampling.Values() {
			differ[i] = differ[i] || value != samplings[0].Values()[i]
		}
	}
	return differ
}

// label names a combination by what tells it from the others.
func label(sampling episode.Sampling, differ []bool) string {
	var parts []string
	for i, value := range sampling.Values() {
		if differ[i] {
			parts = append(parts, value[0]+"="+cmp.Or(value[1], "(none)"))
		}
	}
	return strings.Join(parts, " ")
}

// sweepTable shows what became of each combination: a column for each setting that differs, so that the values can be
// read where there is little room.
func (r *Report) sweepTable() table {
	if len(r.Sweep) == 0 {
		return table{}
	}
	samplings := make([]episode.Sampling, len(r.Sweep))
	for i, g := range r.Sweep {
		samplings[i] = g.Sampling
	}
	differ := varied(samplings)
	t := table{title: "sweep", head: []string{""}, wide: true}
	for i, g := range r.Sweep {
		cells := []string{strconv.Itoa(i + 1)}
		for j, value := range g.Sampling.Values() {
			if differ[j] {
				cells = append(cells, cmp.Or(value[1], "(none)"))
				if i == 0 {
					t.head = append(t.head, value[0])
				}
			}
		}
		var counts []Count
		for _, o := range g.Outcomes {
			counts = append(counts, Count{string(o.Outcome), o.Count})
		}
		t.rows = append(t.rows, append(cells, Thousands(g.Episodes), number(g.Reward.Mean, decimal),
			number(g.SuccessRate.Mean, percent), intervalText(g.SuccessRate, percent), countsText(counts)))
	}
	t.head = append(t.head, "episodes", "reward", "success", "95 % interval", "outcomes")
	return t
}
