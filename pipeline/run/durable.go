package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"trajgen/outputs/turns"
	"trajgen/pipeline/model/tape"
	"trajgen/pipeline/rollout"
)

// openTurns opens the record of what episodes in play were told.
func (s *Run) openTurns(exp *Experiment) (err error) {
	if exp.File.Play.DurableTurns {
		s.turns, err = turns.Open(s.dir, turns.Options{Finished: s.ended, Logger: exp.Logger})
	}
	return err
}

// ended says whether the journal has an attempt, or a later one.
func (s *Run) ended(id string, attempt int) bool {
	entry, ok := s.journal.Last(id)
	return ok && entry.Attempt >= attempt
}

// Steps are where episodes in play are recorded; nil without durable_turns.
func (s *Run) Steps() rollout.Steps {
	if s.turns == nil {
		return nil
	}
	return taping{s.turns, s.tape}
}

// taping is a record, and perhaps a tape beside it. What the record has is on the tape, too, and each step says how much
// of the tape that is: behind it stand a line break, which no step has in it, and the numbers of exchanges.
type taping struct {
	turns *turns.Log
	tape  *tape.Recorder // nil when none is recorded
}

func (t taping) Record(ctx context.Context, id string, attempt int, step []byte, paid bool) error {
	if t.tape == nil {
		return t.turns.Record(ctx, id, attempt, step, paid)
	}
	if paid {
		if err := t.tape.Sync(); err != nil {
			return err
		}
	}
	kept, err := json.Marshal(t.tape.Kept(id, attempt))
	if err != nil {
		return fmt.Errorf("record a step: %w", err)
	}
	return t.turns.Record(ctx, id, attempt, append(append(step, '\n'), kept...), paid)
}

func (t taping) Recall(id string, attempt int) ([][]byte, error) {
	steps, damage := t.turns.Recall(id, attempt)
	// A run that was not recorded on a tape before is not on it: what its steps say is nothing.
	var kept map[string]int
	for i, step := range steps {
		text, count, found := bytes.Cut(step, []byte("\n"))
		steps[i], kept = text, nil
		if !found {
			continue
		}
		if err := json.Unmarshal(count, &kept); err != nil {
			damage = errors.Join(damage, fmt.Errorf("step %d: exchanges on the tape: %w", i, err))
		}
	}
	if t.tape == nil || len(steps) == 0 || damage != nil {
		return steps, damage
	}
	return steps, t.tape.Resume(id, attempt, kept)
}
