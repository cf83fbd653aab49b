package reliability

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// Fate is what became of one pair.
type Fate struct {
	Clean string  `json:"clean"` // IDs
	Twin  string  `json:"twin"`
	Task  string  `json:"task"`
	Harm  float64 `json:"harm"`
	// Turn is the first behind the call in which the two did not do the same, and what each did there; -1 where they did the same to the end.
	Turn      int    `json:"turn"`
	CleanDoes string `json:"clean_does"`
	TwinDoes  string `json:"twin_does"`
}

// mostFates are how many pairs a cell shows.
const mostFates = 20

// worst are the pairs that lost most. What they did is not known yet.
func worst(pairs []pair) []Fate {
	fates := []Fate{}
	for _, p := range pairs {
		if p.clean.resolved && p.twin.resolved {
			fates = append(fates, Fate{Clean: p.clean.id, Twin: p.twin.id, Task: p.twin.task, Harm: p.clean.success - p.twin.success, Turn: -1})
		}
	}
	slices.SortStableFunc(fates, func(a, b Fate) int { return cmp.Compare(b.Harm, a.Harm) })
	return slices.Clip(fates[:min(mostFates, len(fates))])
}

// Tell fills in what the shown pairs did, as their episodes say.
func (r *Report) Tell(find func(id string) (*episode.Episode, error)) error {
	for i := range r.Cells {
		for j := range r.Cells[i].Worst {
			f := &r.Cells[i].Worst[j]
			clean, err := find(f.Clean)
			if err != nil {
				return err
			}
			twin, err := find(f.Twin)
			if err != nil {
				return err
			}
			f.part(clean, twin)
		}
	}
	return nil
}

// part finds the first turn behind the call in which the two differ.
func (f *Fate) part(clean, twin *episode.Episode) {
	for turn := twin.Twin.Turn + 1; ; turn++ {
		was, is := does(clean, turn), does(twin, turn)
		if was == "" && is == "" {
			return
		}
		if was != is {
			f.Turn, f.CleanDoes, f.TwinDoes = turn, cmp.Or(brief(was), "(has ended)"), cmp.Or(brief(is), "(has ended)")
			return
		}
	}
}

// does is what an episode did in a turn: its calls, or what it said; "" when it had ended.
func does(ep *episode.Episode, turn int) string {
	var calls []string
	for i := range ep.Calls {
		if c := &ep.Calls[i]; c.Turn == turn && c.Parent == "" {
			calls = append(calls, fmt.Sprintf("%s %s", c.Name, c.RawArguments))
		}
	}
	if len(calls) > 0 {
		return strings.Join(calls, "; ")
	}
	for i := range ep.Turns {
		if t := &ep.Turns[i]; t.Index == turn && t.Message >= 0 && t.Message < len(ep.Messages) {
			return "says " + ep.Messages[t.Message].Content
		}
	}
	return ""
}

// brief is the beginning of a text, in one line.
func brief(text string) string {
	const most = 200
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}
