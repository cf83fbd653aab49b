package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// groupTallies are the episodes by what they have in common.
type groupTallies struct{ combinations, toolsets, tags, difficulties groups }

func (g *groupTallies) add(ep *episode.Episode) {
	g.combinations.add(cmp.Or(strings.Join(ep.Toolsets, "+"), "(none)"), ep)
	for _, toolset := range slices.Compact(slices.Sorted(slices.Values(ep.Toolsets))) {
		g.toolsets.add(toolset, ep)
	}
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(ep.Task.Tags))) {
		g.tags.add(tag, ep)
	}
	if ep.Task.Difficulty != "" {
		g.difficulties.add(ep.Task.Difficulty, ep)
	}
}

func (g *groupTallies) list() Groups {
	return Groups{g.combinations.list(), g.toolsets.list(), g.tags.list(), g.difficulties.list()}
}

// groups collects rewards by what episodes have in common.
type groups map[string]*groupTally

type groupTally struct {
	episodes int
	reward   sample
}

func (g groups) add(name string, ep *episode.Episode) {
	t := tallyOf(g, name)
	t.episodes++
	if judged(ep) {
		t.reward.add(kept(ep.Key.Task), *ep.Reward)
	}
}

func (g groups) list() []Group {
	list := make([]Group, 0, len(g))
	for _, name := range slices.Sorted(maps.Keys(g)) {
		list = append(list, Group{Name: name, Episodes: g[name].episodes, Reward: g[name].reward.estimate()})
	}
	return list
}
