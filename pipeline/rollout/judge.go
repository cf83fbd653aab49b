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

// judge gives the episode its reward while the sandbox still stands. Without a verifier there is none.
func (a *attempt) judge(ctx context.Context) error {
	if len(a.task.Verify) == 0 {
		return nil
	}
	began := a.Now()
	subject := reward.Subject{
		Answer: a.ep.Answer, Sandbox: a.sandbox.open, Apart: a.Sandboxes.known().Isolation["processes"] == "own",
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
	rewards, mean, err := reward.Verify(ctx, a.task.Verify, subject)
	a.ep.Phases.Verify = a.Now().Sub(began)
	var broken *reward.Broken
	var fault *faultError
	switch {
	case err == nil:
		a.ep.Rewards, a.ep.Reward = rewards, &mean
		return nil
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
