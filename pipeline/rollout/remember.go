package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Record is what one episode's calls were told by others than its sandbox.
type Record struct{ game *game }

// Remember has somebody answer a question of a call, or takes the answer from the record of the call's episode. What is
// asked counts as the same question when role and question are the same.
func Remember[T any](ctx context.Context, record *Record, role, question string, ask func() (T, error)) (T, error) {
	g := record.game
	var none T
	about := ""
	if g.progress.steps != nil {
		about = digest([]byte(question))
		data, anew, err := g.progress.answer(role, about)
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
	if err := g.resumed(ctx, g.progress.calling()); err != nil {
		return none, err
	}
	answer, err := ask()
	if err != nil {
		g.progress.stop(halts(err))
		return answer, err
	}
	if g.progress.steps == nil {
		return answer, nil
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return none, fmt.Errorf("record an answer: %w", err)
	}
	err = g.progress.record(ctx, step{
		Kind: stepAnswer, Turn: g.progress.calling(), Role: role, About: about, Answer: data, Left: g.left, Spent: g.spent(),
	}, true)
	g.progress.stop(err)
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
