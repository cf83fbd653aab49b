package episode

import "slices"

// Tokens are the tokens of one exchange with the model. Lists that the server did not send are empty.
type Tokens struct {
	Prompt     IDs
	Completion IDs       // as sampled; includes the end of the turn if the server sends it
	Logprobs   []float32 // of the sampled tokens, in their order
}

// TurnTokens are a turn's Tokens in the form in which the row keeps them. A prompt repeats nearly all of the turn before it;
// kept whole, the prompts of a long episode would take a hundred times its size.
type TurnTokens struct {
	// The prompt is the first Shared ids of the sequence before it, followed by Prompt. The sequence is prompt and completion of
	// the last earlier turn whose prompt is known. Shared is as large as possible.
	Shared     int       `json:"shared,omitempty"`
	Prompt     IDs       `json:"prompt,omitempty"`
	Completion IDs       `json:"completion,omitempty"`
	Logprobs   []float32 `json:"logprobs,omitempty"`
}

// prompted reports whether the prompt is known; a known prompt is never empty.
func (t *TurnTokens) prompted() bool { return t != nil && (t.Shared > 0 || len(t.Prompt) > 0) }

// kept is the part of the sequence that the prompt shares.
func (t *TurnTokens) kept(sequence IDs) IDs { return sequence[:max(0, min(t.Shared, len(sequence)))] }

// known reports whether all ids of the turn are known: as many as the server counted, if it did.
func (t *Turn) known() bool {
	k := t.Tokens
	switch {
	case !k.prompted():
		return false
	case t.Usage.Reported:
		return k.Shared+len(k.Prompt) == t.Usage.Prompt && len(k.Completion) == t.Usage.Completion
	}
	return len(k.Completion) > 0
}

// follow makes the sequence of a turn from the one before it, and reuses its memory.
func (t *TurnTokens) follow(sequence IDs) IDs {
	if !t.prompted() {
		return sequence
	}
	sequence = append(t.kept(sequence), t.Prompt...)
	return append(sequence, t.Completion...)
}

// sequence is the last known prompt and its completion among the first turns.
func (ep *Episode) sequence(turns int) IDs {
	var sequence IDs
	for i := range turns {
		sequence = ep.Turns[i].Tokens.follow(sequence)
	}
	return sequence
}

// KeepTokens returns tokens as the episode's next turn keeps them; nil if there are none.
func (ep *Episode) KeepTokens(t Tokens) *TurnTokens {
	if len(t.Prompt)+len(t.Completion)+len(t.Logprobs) == 0 {
		return nil
	}
	before, shared := ep.sequence(len(ep.Turns)), 0
	for shared < min(len(before), len(t.Prompt)) && before[shared] == t.Prompt[shared] {
		shared++
	}
	// Clones, so that neither the whole prompt nor spare capacity stays in memory.
	return &TurnTokens{
		Shared: shared, Prompt: slices.Clone(t.Prompt[shared:]), Completion: slices.Clone(t.Completion), Logprobs: slices.Clone(t.Logprobs),
	}
}

// TokensOf returns the tokens of a turn, its prompt whole.
func (ep *Episode) TokensOf(turn int) Tokens {
	t := ep.Turns[turn].Tokens
	if t == nil {
		return Tokens{}
	}
	whole := Tokens{Completion: t.Completion, Logprobs: t.Logprobs}
	if t.prompted() {
		whole.Prompt = append(t.kept(ep.sequence(turn)), t.Prompt...)
	}
	return whole
}

// Span is a turn's completion in a sequence: the ids from Start to before End.
type Span struct{ Start, End int }

// Sequence returns all tokens of the episode in one list, and where in it the turns' completions are: the model sampled those,
// and got all others as input. It is nil unless the verdict is DriftNone.
func (ep *Episode) Sequence() (IDs, []Span) {
	if ep.Drift == nil || ep.Drift.Verdict != DriftNone {
		return nil, nil
	}
	var ids IDs
	spans := make([]Span, len(ep.Turns))
	for i := range ep.Turns {
		t := ep.Turns[i].Tokens
		ids = t.follow(ids)
		spans[i] = Span{len(ids) - len(t.Completion), len(ids)}
	}
	return ids, spans
}
