package episode

import "slices"

// DriftVerdict says whether an episode's tokens can be trained on as they are.
type DriftVerdict string

// The verdicts.
const (
	DriftNone      DriftVerdict = "none"      // every prompt begins with the turn before it, token for token
	DriftFound     DriftVerdict = "drift"     // a prompt does not: the server rendered a turn otherwise than it was sampled
	DriftCompacted DriftVerdict = "compacted" // a prompt does not, because earlier messages were left out or replaced
	DriftRepaired  DriftVerdict = "repaired"  // a prompt does not, because arguments that are not a JSON object were sent back as one
	DriftUnknown   DriftVerdict = "unknown"   // the server did not tell the ids of every turn, or not as many as it counted
)

// DriftVerdicts lists them in the order in which reports show them.
func DriftVerdicts() []DriftVerdict {
	return []DriftVerdict{DriftNone, DriftFound, DriftCompacted, DriftRepaired, DriftUnknown}
}

// Drift is what a comparison of each turn's prompt with the turn before it came to. Ids that stand behind the
// completion are no drift: the end of a turn, results of tools, the opening of the next turn.
type Drift struct {
	Verdict DriftVerdict `json:"verdict"`
	// Turn is the first one that the verdict is about: whose prompt begins otherwise, or whose ids are not known.
	Turn int `json:"turn,omitempty"`
	// Position is where in that prompt the first other id is. Expected is the turn before from there on and Got the
	// prompt, a few ids of each.
	Position int `json:"position,omitempty"`
	Expected IDs `json:"expected,omitempty"`
	Got      IDs `json:"got,omitempty"`
}

// driftShown is how many ids a Drift shows.
const driftShown = 8

// FindDrift compares the turns; nil when the server told no ids at all. A drift outweighs a turn without ids, and that one
// that is our doing: a compaction, or arguments that were sent otherwise.
func (ep *Episode) FindDrift() *Drift {
	var sequence IDs
	var found, unknown, ours *Drift
	told, resent := false, 0 // where in the sequence a completion begins that was sent back otherwise; its end when it was not
	for i := range ep.Turns {
		turn := &ep.Turns[i]
		if !turn.told() && unknown == nil {
			unknown = &Drift{Verdict: DriftUnknown, Turn: i}
		}
		t := turn.Tokens
		if t == nil {
			continue
		}
		told = told || len(t.Completion) > 0 || t.prompted()
		if t.prompted() && t.Shared < len(sequence) {
			d := &Drift{
				Verdict: DriftFound, Turn: i, Position: t.Shared,
				Expected: slices.Clone(sequence[t.Shared:min(len(sequence), t.Shared+driftShown)]),
				Got:      slices.Clone(t.Prompt[:min(len(t.Prompt), driftShown)]),
			}
			switch {
			case ep.compactedAt(i):
				d.Verdict = DriftCompacted
				ours = first(ours, d)
			case t.Shared >= resent:
				d.Verdict = DriftRepaired
				ours = first(ours, d)
			default:
				found = first(found, d)
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
	switch {
	case !told:
		return nil
	case found != nil:
		return found
	case unknown != nil:
		return unknown
	case ours != nil:
		return ours
	}
	return &Drift{Verdict: DriftNone}
}

// compactedAt says whether a turn was the first to be asked for with a shorter conversation.
func (ep *Episode) compactedAt(turn int) bool {
	return slices.ContainsFunc(ep.Compactions, func(c Compaction) bool { return c.Turn == turn && c.Failed == "" })
}

// resent says whether calls of a turn were sent back otherwise than they were sampled.
func (ep *Episode) resent(turn int) bool {
	at := ep.Turns[turn].Message
	return at >= 0 && at < len(ep.Messages) && slices.ContainsFunc(ep.Messages[at].Calls, func(c Call) bool { return c.Sent != "" })
}

func first(a, b *Drift) *Drift {
	if a != nil {
		return a
	}
	return b
}
