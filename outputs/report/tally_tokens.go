package report

import (
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
)

// driftTally counts episodes by what their tokens are good for.
type driftTally struct {
	DriftStats
	verdicts counter[episode.DriftVerdict]
	withIDs  int // episodes with any ids
}

func (t *driftTally) add(ep *episode.Episode) {
	verdict := episode.DriftUnknown
	if ep.Drift != nil {
		verdict = ep.Drift.Verdict
		t.withIDs++
	}
	t.verdicts.add(verdict)
	if !ep.Outcome.AgentsDoing() {
		return
	}
	t.Of++
	if verdict != episode.DriftNone {
		return
	}
	t.Safe++
	lacksSome := func(turn episode.Turn) bool {
		return turn.Tokens != nil && len(turn.Tokens.Logprobs) != len(turn.Tokens.Completion)
	}
	if !slices.ContainsFunc(ep.Turns, lacksSome) {
		t.WithLogprobs++
	}
}

// stats are null when no server gave ids and none was asked for them.
func (t *driftTally) stats(asked bool) *DriftStats {
	if t.withIDs == 0 && !asked {
		return nil
	}
	stats := t.DriftStats
	stats.Verdicts = t.verdicts.inOrder(episode.DriftVerdicts())
	if stats.Of > 0 {
		stats.SafeShare = new(float64(stats.Safe) / float64(stats.Of))
	}
	return &stats
}

// driftFact says how many rows can be trained on as they are, if that is known or was wanted.
func (r *Report) driftFact() fact {
	d := r.Drift
	if d == nil {
		return fact{}
	}
	f := fact{name: "token drift", text: countsText(d.Verdicts)}
	if d.SafeShare != nil {
		f.text += fmt.Sprintf("; %s safe to train on (%s of %s, %s with log probabilities)",
			percent(*d.SafeShare), Thousands(d.Safe), Thousands(d.Of), Thousands(d.WithLogprobs))
		f.alert = d.Safe < d.Of
	}
	return f
}
