package report

import (
	"fmt"

	"trajgen/pipeline/episode"
)

// Subagents are those of all episodes. They do not count as episodes. What they used is a part of Spending, and their calls
// are a part of Calls.
type Subagents struct {
	Count    int            `json:"count"`
	Outcomes []OutcomeCount `json:"outcomes"`
	Usage    TokenUsage     `json:"tokens"`
	USD      *float64       `json:"usd"` // null when that of any of them is not known
}

type subagentTally struct {
	Subagents
	outcomes counter[episode.Outcome]
	unknown  int
	usd      float64
}

func (t *subagentTally) add(root *episode.Episode, s *spending) {
	for ep := range root.Tree() {
		if ep == root {
			continue
		}
		t.Count++
		t.outcomes.add(ep.Outcome)
		for i := range ep.Turns {
			t.Usage.Turns++
			t.Usage.add(ep.Turns[i].Usage, &t.Usage.Unreported)
		}
		usd, known := episode.CostOf(ep, s.prices, s.asked)
		if t.usd += usd; !known && len(ep.Turns) > 0 {
			t.unknown++
		}
	}
}

// list is nil for a run without subagents.
func (t *subagentTally) list() *Subagents {
	if t.Count == 0 {
		return nil
	}
	all := t.Subagents
	all.Outcomes = outcomeCounts(t.outcomes)
	if t.unknown == 0 {
		all.USD = &t.usd
	}
	return &all
}

// fact says how many there were, and what they took of the tokens and the cost.
func (s *Subagents) fact() fact {
	if s == nil {
		return fact{}
	}
	text := fmt.Sprintf("%s, with %s prompt and %s completion tokens of those below",
		Thousands(s.Count), Thousands(s.Usage.Prompt), Thousands(s.Usage.Completion))
	if s.USD != nil {
		text += ", " + dollars(*s.USD)
	}
	return fact{name: "subagents", text: text}
}
