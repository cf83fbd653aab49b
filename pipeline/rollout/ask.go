package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"trajgen/pipeline/model"
)

// inquire is a model.Ask.
func (p *progress) inquire(role, question string, answer any, ask func() error) error {
	q := &step{Kind: stepAnswer, Turn: len(p.ep.Turns) - 1, Role: role}
	if p.Recorder != nil {
		q.About = digest([]byte(question))
	}
	recorded, err := p.askOnce(q, func() (err error) {
		if err = ask(); err == nil && p.Recorder != nil {
			q.Answer, err = json.Marshal(answer)
		}
		return err
	})
	if recorded {
		if err = json.Unmarshal(q.Answer, answer); err != nil {
			err = fmt.Errorf("recorded answer: %w", err)
		}
	}
	return err
}

// consult asks a model on the agent's clock, or takes from the record what it said. The request has its clock afterwards. The
// error may be what the model failed with.
func (a *attempt) consult(ctx context.Context, role string, m model.Model, req *model.Request) (*step, error) {
	q := &step{Kind: stepReply, Turn: req.Turn, Role: role, About: a.progress.about(role, req)}
	recorded, err := a.progress.askOnce(q, func() (err error) {
		q.Started = a.Now()
		q.Took.Worked = a.clock.thinking(ctx, func(ctx context.Context, clock model.Clock) {
			req.Clock = clock
			q.Reply, err = complete(ctx, m, req)
		})
		q.Took.Elapsed = a.Now().Sub(q.Started)
		if a.Recorder != nil {
			q.Window = a.fits.window()
		}
		if q.Turn == 0 {
			q.Quirks = a.kit.registry.Quirks()
		}
		if err == nil {
			return nil
		}
		q.Reply = nil
		if ctx.Err() == nil && errors.As(err, &q.Failed) && !q.Failed.Fatal {
			return nil
		}
		return err // what the run died of, and not the attempt
	})
	if recorded {
		a.clock.left = min(q.Left, a.limits.Time)
	}
	if err == nil && q.Failed != nil {
		err = q.Failed
	}
	return q, err
}

// complete asks a model. Thousands of episodes wait in here: neither request nor reply is to lie on their stacks more
// often than it takes.
func complete(ctx context.Context, m model.Model, req *model.Request) (*model.Reply, error) {
	reply, err := m.Complete(ctx, *req)
	return &reply, err
}

// askOnce completes a question with the answer in the record. Without one, ask completes it, and its answer is recorded, but not
// its error.
func (p *progress) askOnce(q *step, ask func() error) (recorded bool, err error) {
	if recorded, err = p.take(q); recorded || err != nil {
		return recorded, err
	}
	if err := p.resumed(q.Turn); err != nil {
		return false, err
	}
	if err := ask(); err != nil {
		p.stop(halts(err))
		return false, err
	}
	return false, p.record(q, true)
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
