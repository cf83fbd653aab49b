package rows

import "trajgen/pipeline/episode"

// tokens divides the token columns into what each turn keeps.
func (b *back) tokens(row *Trajectory, ep *episode.Episode) {
	verdict := episode.DriftVerdict(row.Drift)
	switch {
	case verdict == episode.DriftNone:
		ep.Drift = &episode.Drift{Verdict: verdict}
		b.sequence(row, ep)
		return
	case verdict == episode.DriftUnknown && row.DriftTurn == nil: // the server gave nothing
		return
	case row.DriftTurn == nil:
		b.bad("drift is %q and drift_turn null (want the turn that it is about)", row.Drift)
		return
	}
	ep.Drift = &episode.Drift{
		Verdict: verdict, Turn: int(*row.DriftTurn), Position: int(orZero(row.DriftPosition)), Expected: same(row.DriftExpected), Got: same(row.DriftGot),
	}
	for i := range row.Turns {
		t := &row.Turns[i]
		if t.SharedIDs == nil && len(t.PromptIDs)+len(t.CompletionIDs)+len(t.Logprobs) == 0 {
			continue
		}
		ep.Turns[i].Tokens = &episode.TurnTokens{
			Shared: int(orZero(t.SharedIDs)), Prompt: same(t.PromptIDs), Completion: same(t.CompletionIDs), Logprobs: same(t.Logprobs),
		}
	}
}

// sequence cuts the one list of an episode without drift at the ends of the turns: each prompt begins with all before it.
func (b *back) sequence(row *Trajectory, ep *episode.Episode) {
	end := 0
	for i := range row.Turns {
		t := &row.Turns[i]
		prompt, completion := int(orZero(t.PromptEnd)), int(orZero(t.CompletionEnd))
		if t.PromptEnd == nil || t.CompletionEnd == nil || prompt < end || completion < prompt || completion > len(row.TokenIDs) {
			b.bad("turn %d has prompt_end %d and completion_end %d (want them in order, from %d to the %d token_ids)", i, prompt, completion, end, len(row.TokenIDs))
			return
		}
		kept := &episode.TurnTokens{Shared: end, Prompt: same(row.TokenIDs[end:prompt:prompt]), Completion: same(row.TokenIDs[prompt:completion:completion])}
		if len(row.Logprobs) >= completion {
			kept.Logprobs = logprobs(row.Logprobs[prompt:completion])
		}
		ep.Turns[i].Tokens = kept
		end = completion
	}
	if end != len(row.TokenIDs) {
		b.bad("token_ids has %d ids and the last turn ends at %d (want it to end with them)", len(row.TokenIDs), end)
	}
}

// logprobs are those of one turn: of all its tokens or of none.
func logprobs(column []*float32) []float32 {
	list := make([]float32, 0, len(column))
	for _, p := range column {
		if p == nil {
			return nil
		}
		list = append(list, *p)
	}
	return same(list)
}
