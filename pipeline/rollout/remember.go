package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Record is what one episode's calls were told by others than its sandbox.
type Record struct{ attempt *attempt }

// Remember answers a question of a call by calling ask, or takes the answer from the record of the call's episode. What is
// asked counts as the same question when role and question are the same.
func Remember[T any](ctx context.Context, record *Record, role, question string, ask func() (T, error)) (T, error) {
	a := record.attempt
	var none T
	about := ""
	if a.progress.steps != nil {
		about = digest([]byte(question))
		data, anew, err := a.progress.answer(role, about)
		if err != nil {
			return none, err
		}
		if !anew {
			var answer T
			if err := json.Unmarshal(data, &answer); err != nil {
				return none, fmt.Errorf("recorded answer: %w", err)
			}
			return answer, nil
		}
	}
	if err := a.resumed(ctx, a.progress.calling()); err != nil {
		return none, err
	}
	answer, err := ask()
	if err != nil {
		a.progress.stop(halts(err))
		return answer, err
	}
	if a.progress.steps == nil {
		return answer, nil
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return none, fmt.Errorf("record an answer: %w", err)
	}
	err = a.progress.record(ctx, step{
		Kind: stepAnswer, Turn: a.progress.calling(), Role: role, About: about, Answer: data, Left: a.left, Spent: a.spent(),
	}, true)
	a.progress.stop(err)
	return answer, err
}

// calling is the turn whose calls are under way.
func (p *progress) calling() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn
}

// calls says whose calls are under way.
func (p *progress) calls(turn int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn = turn
}

// halting is an error that starts no new episodes and ends this one without an outcome.
type halting interface {
	error
	Halt() bool
}

// halts finds such an error.
func halts(err error) error {
	if reached, ok := errors.AsType[halting](err); ok && reached.Halt() {
		return reached
	}
	return nil
}

// stop keeps what ends the run, or this episode without an outcome: the call in which it came about will say so in its
// own words.
func (p *progress) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.stopped = err
	}
}

func (p *progress) stops() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopped
}
