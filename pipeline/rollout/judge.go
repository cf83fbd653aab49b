package rollout

import (
	"context"
	"errors"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
)

// judge gives the episode its reward while the sandbox still stands. Without a verifier there is none.
func (g *game) judge(ctx context.Context) error {
	if len(g.task.Verify) == 0 {
		return nil
	}
	began := g.Now()
	rewards, mean, err := reward.Verify(ctx, g.task.Verify, reward.Subject{
		Answer: g.ep.Answer, Sandbox: g.box.open, Apart: g.guarantees.Isolation["processes"] == "own",
	})
	g.ep.Phases.Verify = g.Now().Sub(began)
	var broken *reward.Broken
	var fault *faultError
	switch {
	case err == nil:
		g.ep.Rewards, g.ep.Reward = rewards, &mean
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
