package episode

import (
	"cmp"
	"slices"
)

// DriftVerdict says whether an episode's tokens can be trained on as they are.
type DriftVerdict string

// The verdicts.
const (
	DriftNone      DriftVerdict = "none"      // every prompt begins with the turn before it, token for token
	DriftFound     DriftVerdict = "drift"     // a prompt does not: the server rendered a turn otherwise than it was sampled
	DriftCompacted DriftVerdict = "compacted" // a prompt does not, because earlier messages were left out or replaced
	DriftRepaired  DriftVerdict = "repaired"  // a prompt does not, because arguments that are not a JSON object were sent back as one
	DriftUnknown   DriftVerdict = "unknown"   // the server did not send the ids of every turn, or not as many as it counted
)

// DriftVerdicts lists them in the order in which reports show them.
func DriftVerdicts() []DriftVerdict {
	return []DriftVerdict{DriftNone, DriftFound, DriftCompacted, DriftRepaired, DriftUnknown}
}

// Drift is the result of comparing each turn's prompt with the turn before it. Ids after the completion are not drift: the end
// of a turn, results of tools, the opening of the next turn.
type Drift struct {
	Verdict DriftVerdict `json:"verdict"`
	// Turn is the first turn that the verdict concerns: its prompt begins differently, or its ids are unknown.
	Turn int `json:"turn,omitempty"`
	// Position is the index of the first different id in that prompt. From there on, Expected has a few ids of the turn before
	// and Got a few of the prompt.
	Position int `json:"position,omitempty"`
	Expected IDs `json:"expected,omitempty"`
	Got      IDs `json:"got,omitempty"`
}

// driftShown is how many ids a Drift shows.
const driftShown = 8

// FindDrift compares the turns. It returns nil if the server sent no ids at all. Drift of the server's doing comes first, then a
// turn without ids, then drift of our doing: a compaction, or arguments that were sent back otherwise.
func (ep *Episode) FindDrift() *Drift {
	var sequence IDs
	var found, unknown, ours *Drift
	// resent is where a completion begins that was sent back otherwise; without one it is the end of the sequence.
	known, resent := false, 0
	for i := range ep.Turns {
		turn := &ep.Turns[i]
		if !turn.known() && unknown == nil {
			unknown = &Drift{Verdict: DriftUnknown, Turn: i}
		}
		t := turn.Tokens
		if t == nil {
			continue
		}
		known = known || len(t.Completion) > 0 || t.prompted()
		if t.prompted() && t.Shared < len(sequence) {
			d := &Drift{
				Verdict: DriftFound, Turn: i, Position: t.Shared,
				Expected: slices.Clone(sequence[t.Shared:min(len(sequence), t.Shared+driftShown)]),
				Got:      slices.Clone(t.Prompt[:min(len(t.Prompt), driftShown)]),
			}
			switch {
			case ep.compactedAt(i):
				d.Verdict = DriftCompacted
				ours = cmp.Or(ours, d)
			case t.Shared >= resent:
				d.Verdict = DriftRepaired
				ours = cmp.Or(ours, d)
			default:
				found = cmp.Or(found, d)
			}
		}
		sequence = t.follow(sequence)
		switch {
		case t.prompted() && ep.resent(i):
			resent = len(sequence) - len(t.Completion)
		case t.prompted():
			resent = len(sequence)
		}
	}
	if !known {
		return nil
	}
	return cmp.Or(found, unknown, ours, &Drift{Verdict: DriftNone})
}

// compactedAt reports whether a turn was the first with a shorter conversation.
func (ep *Episode) compactedAt(turn int) bool {
	return slices.ContainsFunc(ep.Compactions, func(c Compaction) bool { return c.Turn == turn && c.Failed == "" })
}

// resent reports whether calls of a turn were sent back otherwise than they were sampled.
func (ep *Episode) resent(turn int) bool {
	at := ep.Turns[turn].Message
	return at >= 0 && at < len(ep.Messages) && slices.ContainsFunc(ep.Messages[at].Calls, func(c Call) bool { return c.Sent != "" })
}
