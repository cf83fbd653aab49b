package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// groupTallies are the episodes by what they have in common.
type groupTallies struct{ combinations, toolsets, tags, difficulties groups }

func (g *groupTallies) add(ep *episode.Episode) {
	g.combinations.add(ep, cmp.Or(strings.Join(ep.Toolsets, "+"), "(none)"))
	g.toolsets.add(ep, ep.Toolsets...)
	g.tags.add(ep, ep.Task.Tags...)
	if ep.Task.Difficulty != "" {
		g.difficulties.add(ep, ep.Task.Difficulty)
	}
}

func (g *groupTallies) list() Groups {
	return Groups{g.combinations.list(), g.toolsets.list(), g.tags.list(), g.difficulties.list()}
}

// groups collects rewards by what episodes have in common.
type groups map[string]*groupTally

type groupTally struct {
	episodes int
	reward   estimate.Sample
}

// add counts an episode once in each of its groups.
func (g *groups) add(ep *episode.Episode, names ...string) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		t := tallyOf(g, name)
		t.episodes++
		if judged(ep) {
			t.reward.Add(ep.Key.Task, *ep.Reward)
		}
	}
}

func (g groups) list() []Group {
	list := make([]Group, 0, len(g))
	for _, name := range slices.Sorted(maps.Keys(g)) {
		list = append(list, Group{Name: name, Episodes: g[name].episodes, Reward: g[name].reward.Estimate()})
	}
	return list
}
