package report

import (
	"fmt"

	"trajgen/pipeline/episode"
)

// driftTally counts episodes by what their tokens are good for.
type driftTally struct {
	verdicts        counter[episode.DriftVerdict]
	safe, judgeable int
	complete        int // safe ones with every log probability
	withIDs         int // episodes with any ids
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
	t.judgeable++
	if verdict != episode.DriftNone {
		return
	}
	t.safe++
	for i := range ep.Turns {
		if tokens := ep.Turns[i].Tokens; tokens != nil && len(tokens.Logprobs) != len(tokens.Completion) {
			return
		}
	}
	t.complete++
}

// stats are null when no server gave ids and none was asked for them.
func (t *driftTally) stats(asked bool) *DriftStats {
	if t.withIDs == 0 && !asked {
		return nil
	}
	stats := &DriftStats{Verdicts: t.verdicts.inOrder(episode.DriftVerdicts()), Safe: t.safe, Of: t.judgeable, WithLogprobs: t.complete}
	if t.judgeable > 0 {
		stats.SafeShare = new(float64(t.safe) / float64(t.judgeable))
	}
	return stats
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
