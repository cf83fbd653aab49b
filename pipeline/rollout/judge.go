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

// judge runs the checks of an attempt's task.
type judge struct {
	*attempt
	verdicts map[int][]episode.Reward // of checks that were due before the end, by their number
}

// subject is what is judged.
func (j *judge) subject() reward.Subject {
	subject := reward.Subject{
		Answer: j.ep.Answer, Sandbox: j.sandbox.open, Apart: j.Sandboxes.known().Isolation["processes"] == "own",
		Earlier: j.verdicts, Own: j.Sandboxes.Own(j.task, j.sandbox.spec, j.sandbox.end),
		Said: func() ([]episode.Message, []episode.ToolCall) { return j.ep.Messages, j.kit.session.Trace() },
	}
	if sites, ok := registry.Service[stateful](j.kit.session); ok {
		subject.State = sites.State
	}
	if home, ok := registry.Service[homely](j.kit.session); ok {
		subject.Home = home.HomeState
	}
	if messages, ok := registry.Service[sending](j.kit.session); ok {
		subject.Outbox = messages.Sent
	}
	return subject
}

// due runs the checks that are due when the agent has answered the n-th message, and removes what they brought. It says
// whether the agent goes on. Processes that the agent left running end.
func (j *judge) due(ctx context.Context, n int) (goOn bool, err error) {
	began := j.Now()
	defer func() { j.ep.Phases.Verify += j.Now().Sub(began) }()
	goOn = true
	for i, check := range j.task.Verify {
		if check.After != n {
			continue
		}
		subject := j.subject()
		judged, err := reward.Judge(ctx, check, subject)
		if err == nil {
			err = reward.Clear(ctx, check, subject)
		}
		if err != nil {
			return false, unjudged(ctx, err)
		}
		if j.verdicts == nil {
			j.verdicts = map[int][]episode.Reward{}
		}
		j.verdicts[i] = judged
		goOn = goOn && judged[0].Value >= check.AtLeast
	}
	return goOn, nil
}

// verify gives the episode its reward while the sandbox still stands. Without a verifier there is none.
func (j *judge) verify(ctx context.Context) error {
	if len(j.task.Verify) == 0 {
		return nil
	}
	began := j.Now()
	rewards, mean, err := reward.Verify(ctx, j.task.Verify, j.subject())
	j.ep.Phases.Verify += j.Now().Sub(began)
	if err != nil {
		return unjudged(ctx, err)
	}
	j.ep.Rewards, j.ep.Reward = rewards, &mean
	return nil
}

// unjudged says what an error of a verifier means for the episode.
func unjudged(ctx context.Context, err error) error {
	var broken *reward.Broken
	var fault *faultError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &fault): // the sandbox could not be opened
		return err
	case errors.Is(err, reward.ErrOpen):
		return faulty(episode.SandboxError, "verifier", err)
	case errors.As(err, &broken):
		return faulty(episode.VerifierError, broken.Class, err)
	case errors.Is(err, sandbox.ErrGone):
		return faulty(episode.SandboxError, "gone", err)
	}
	return faulty(episode.VerifierError, "error", err)
}
