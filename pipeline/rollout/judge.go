package rollout

import (
	"context"
	"encoding/json"
	"errors"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/registry"
	"trajgen/sandbox"
)

// stateful is what has web sites for the episode.
type stateful interface {
	State(ctx context.Context, site string) (json.RawMessage, error)
}

// homely and sending are what have a home and messages for it.
type homely interface {
	HomeState() (json.RawMessage, error)
}

type sending interface {
	Sent() (json.RawMessage, error)
}

// subject is what is judged.
func (a *attempt) subject() reward.Subject {
	subject := reward.Subject{
		Answer: a.ep.Answer, Sandbox: a.sandbox.open, Apart: a.Sandboxes.known().Isolation["processes"] == "own",
		Earlier: a.progress.verdicts,
	}
	if sites, ok := registry.Service[stateful](a.kit.session); ok {
		subject.State = sites.State
	}
	if home, ok := registry.Service[homely](a.kit.session); ok {
		subject.Home = home.HomeState
	}
	if messages, ok := registry.Service[sending](a.kit.session); ok {
		subject.Outbox = messages.Sent
	}
	return subject
}

// judgeStep runs the checks that are due when the agent has answered the n-th message, and removes what they brought. It says
// whether the agent goes on. Processes that the agent left running end.
func (a *attempt) judgeStep(ctx context.Context, n int) (goOn bool, err error) {
	began := a.Now()
	defer func() { a.ep.Phases.Verify += a.Now().Sub(began) }()
	goOn = true
	for i, check := range a.task.Verify {
		if check.After != n {
			continue
		}
		subject := a.subject()
		judged, err := reward.Judge(ctx, check, subject)
		if err == nil {
			err = reward.Clear(ctx, check, subject)
		}
		if err != nil {
			return false, a.unjudged(ctx, err)
		}
		if a.progress.verdicts == nil {
			a.progress.verdicts = map[int][]episode.Reward{}
		}
		a.progress.verdicts[i] = judged
		goOn = goOn && judged[0].Value >= check.AtLeast
	}
	return goOn, nil
}

// judge gives the episode its reward while the sandbox still stands. Without a verifier there is none.
func (a *attempt) judge(ctx context.Context) error {
	if len(a.task.Verify) == 0 {
		return nil
	}
	began := a.Now()
	rewards, mean, err := reward.Verify(ctx, a.task.Verify, a.subject())
	a.ep.Phases.Verify += a.Now().Sub(began)
	if err != nil {
		return a.unjudged(ctx, err)
	}
	a.ep.Rewards, a.ep.Reward = rewards, &mean
	return nil
}

// unjudged says what an error of a verifier means for the episode.
func (a *attempt) unjudged(ctx context.Context, err error) error {
	var broken *reward.Broken
	var fault *faultError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &fault): // the sandbox could not be opened
		return err
	case errors.As(err, &broken):
		return faulty(episode.VerifierError, broken.Class, err)
	case errors.Is(err, sandbox.ErrGone):
		return faulty(episode.SandboxError, "gone", err)
	}
	return faulty(episode.VerifierError, "error", err)
}
