package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// Skills say what episodes made of skills; nothing for a run without any.
type Skills struct {
	// Draw has the episodes with and without skills. The share that a name has is the probability of that draw.
	Draw   []Group      `json:"skill_draw,omitempty"`
	Skills []SkillStats `json:"skills,omitempty"`
}

// SkillStats are the episodes by how far they came with a skill: it was offered, viewed, and a script of it run.
type SkillStats struct {
	Skill   string            `json:"skill"`
	Offered int               `json:"offered"` // in the system message or by skills_list
	Viewed  int               `json:"viewed"`
	Script  int               `json:"script"`
	Written int               `json:"written,omitempty"` // made or changed by the agent
	Reward  estimate.Estimate `json:"reward"`            // of the episodes that viewed it
}

type skillTally struct {
	SkillStats
	reward estimate.Sample
}

type skillTallies struct {
	draw   groups
	skills map[string]*skillTally
}

func (s *skillTallies) add(ep *episode.Episode) {
	if ep.Skills == nil {
		return
	}
	arm := ep.Skills.Mode + " skills"
	if ep.Skills.LogP != 0 {
		arm = fmt.Sprintf("%s (%s)", arm, percent(math.Exp(ep.Skills.LogP)))
	}
	s.draw.add(ep, arm)
	type use struct{ skill, kind string }
	seen := map[use]bool{}
	for _, e := range ep.Skills.Events {
		kind := e.Kind
		switch kind {
		case episode.SkillListed:
			kind = episode.SkillOffered
		case episode.SkillPatched:
			kind = episode.SkillCreated
		case episode.SkillRefused:
			continue // names what may not be there
		}
		name := e.Skill
		if _, known := s.skills[name]; !known && len(s.skills) >= maxNames {
			name = other // agents name their own
		}
		if seen[use{name, kind}] {
			continue
		}
		seen[use{name, kind}] = true
		t := tallyOf(&s.skills, name)
		switch kind {
		case episode.SkillOffered:
			t.Offered++
		case episode.SkillCreated:
			t.Written++
		case episode.SkillScript:
			t.Script++
		case episode.SkillViewed:
			t.Viewed++
			if judged(ep) {
				t.reward.Add(ep.Key.Task, *ep.Reward)
			}
		}
	}
}

func (s *skillTallies) list() (list Skills) {
	if len(s.draw) > 0 {
		list.Draw = s.draw.list()
	}
	for _, name := range slices.Sorted(maps.Keys(s.skills)) {
		t := s.skills[name]
		stats := t.SkillStats
		stats.Skill, stats.Reward = name, t.reward.Estimate()
		list.Skills = append(list.Skills, stats)
	}
	return list
}

func (r *Report) skillTable() table {
	t := table{title: "skills", head: []string{"", "offered", "viewed", "script run", "written", "reward when viewed", "95 % interval"}}
	for _, s := range r.Skills.Skills {
		t.add(false, s.Skill, Thousands(s.Offered), Thousands(s.Viewed), Thousands(s.Script), Thousands(s.Written),
			number(s.Reward.Mean, decimal), intervalText(s.Reward, decimal))
	}
	return t
}
