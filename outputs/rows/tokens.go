package rows

import (
	"trajgen/pipeline/episode"
)

// tokenColumns fills in what is known of the tokens. An episode without drift has them in one list, as trainers read
// them, and every other one turn by turn: no id stands in a row twice, and the ids of every turn can be had from it.
func (row *Trajectory) tokenColumns(ep *episode.Episode) {
	row.Drift = string(episode.DriftUnknown)
	if d := ep.Drift; d != nil {
		row.Drift = string(d.Verdict)
		if d.Verdict != episode.DriftNone {
			row.DriftTurn = new(int32(d.Turn))
		}
		if d.Verdict != episode.DriftNone && d.Verdict != episode.DriftUnknown {
			row.DriftPosition = new(int32(d.Position))
			row.DriftExpected, row.DriftGot = d.Expected, d.Got
		}
	}
	ids, spans := ep.Sequence()
	if ids == nil {
		for i := range ep.Turns {
			row.Turns[i].tokenColumns(ep.Turns[i].Tokens)
		}
		return
	}
	row.TokenIDs = ids
	row.LossMask, row.Logprobs = make([]int8, len(ids)), make([]*float32, len(ids))
	for i, span := range spans {
		row.Turns[i].PromptEnd, row.Turns[i].CompletionEnd = new(int32(span.Start)), new(int32(span.End))
		var logprobs []float32
		if t := ep.Turns[i].Tokens; t != nil && len(t.Logprobs) == span.End-span.Start {
			logprobs = t.Logprobs
		}
		for at := span.Start; at < span.End; at++ {
			row.LossMask[at] = 1
			if logprobs != nil {
				row.Logprobs[at] = &logprobs[at-span.Start]
			}
		}
	}
}

func (row *Turn) tokenColumns(t *episode.TurnTokens) {
	if t == nil {
		return
	}
	if t.Shared > 0 || len(t.Prompt) > 0 {
		row.SharedIDs = new(int32(t.Shared))
	}
	row.PromptIDs, row.CompletionIDs, row.Logprobs = t.Prompt, t.Completion, t.Logprobs
}
