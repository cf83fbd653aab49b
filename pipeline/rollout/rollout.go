// Package rollout plays one episode from prompt to reward.
//
// It is the one place where errors become faults: what the model can mend goes back to the model as a tool result,
// what is nobody's doing but the machine's ends the episode with an outcome that carries no reward.
package rollout

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
	"trajgen/sandbox"
)

// Player plays episodes. It is shared by all workers and holds nothing of any episode.
type Player struct {
	Model     model.Model
	Registry  *registry.Registry
	Sandboxes sandbox.Backend

	System    string         // system prompt of tasks that bring none
	Disabled  []string       // toolsets or tools that no episode gets
	Limits    episode.Limits // for tasks that name none
	Network   sandbox.Network
	Resources sandbox.Limits
	Image     string

	Now    func() time.Time
	Logger *slog.Logger // nil is silent
}

// The defaults of an episode's limits.
const (
	DefaultTurns = 30
	DefaultTime  = 30 * time.Minute
)

// SuccessAt is the reward from which an episode counts as a success: a weighted sum may fall short of 1 by rounding.
const SuccessAt = 1 - 1e-9

// Play plays ep to its end. An error means that it did not end: see pipeline.Player.
func (p *Player) Play(ctx context.Context, task *episode.Task, ep *episode.Episode) error {
	g, err := p.begin(ctx, task, ep)
	if err == nil {
		err = g.converse(ctx)
	}
	if err == nil {
		err = g.judge(ctx)
	}
	g.end()
	if err = g.settle(ctx, err); err != nil {
		return err
	}
	g.logger.Info("episode ended", "id", ep.ID, "task", ep.Key.Task, "sample", ep.Key.Sample, "outcome", ep.Outcome,
		"stop", ep.Stop, "turns", len(ep.Turns), "tokens", ep.Usage.Prompt+ep.Usage.Completion, "reward", ep.Reward, "elapsed", ep.Elapsed)
	return nil
}

// game is one episode in play.
type game struct {
	*Player
	task    *episode.Task
	ep      *episode.Episode
	toolset *registry.Toolset
	session *registry.Session
	box     *box
	limits  episode.Limits
	logger  *slog.Logger
}

// begin freezes what the model will be shown.
func (p *Player) begin(ctx context.Context, task *episode.Task, ep *episode.Episode) (*game, error) {
	g := &game{Player: p, task: task, ep: ep, logger: p.Logger}
	if g.logger == nil {
		g.logger = slog.New(slog.DiscardHandler)
	}
	ep.Started = p.Now()
	ep.Task = described(task)
	ep.Messages, ep.Turns, ep.Calls = []episode.Message{}, []episode.Turn{}, []episode.ToolCall{}
	g.limits = episode.Limits{
		Turns:  cmp.Or(task.Limits.Turns, p.Limits.Turns, DefaultTurns),
		Tokens: cmp.Or(task.Limits.Tokens, p.Limits.Tokens),
		Time:   cmp.Or(task.Limits.Time, p.Limits.Time, DefaultTime),
	}
	g.box = newBox(p, task, ep)
	toolset, err := p.Registry.Select(ctx, ep.Toolsets, p.Disabled)
	if err != nil {
		return g, faulty(episode.ToolError, "toolset", err)
	}
	g.toolset = toolset
	ep.Tools = toolset.Schemas()
	g.session = toolset.Session(registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return g.box.open(ctx) }, Rand: ep.Key.Rand("tools"), Now: p.Now, Logger: g.logger,
	})
	return g, nil
}

// end closes what the episode holds, whatever happened to it.
func (g *game) end() {
	if g.session != nil {
		g.ep.Calls = g.session.Trace()
		g.session.Close()
	}
	g.box.close()
	g.ep.Elapsed = g.Now().Sub(g.ep.Started)
}

// settle gives the episode its outcome, or returns the error when it has none.
func (g *game) settle(ctx context.Context, err error) error {
	ep := g.ep
	var fault *faultError
	switch {
	case err == nil:
		ep.Outcome = outcome(ep)
		return nil
	case errors.As(err, &fault):
		ep.Outcome, ep.Stop = fault.Outcome, episode.StopFault
		ep.Fault, ep.Reward, ep.Rewards = &fault.Fault, nil, nil
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// outcome names an ending that was the agent's doing. An episode that nobody judges succeeded when it was answered.
func outcome(ep *episode.Episode) episode.Outcome {
	switch {
	case ep.Reward != nil && *ep.Reward >= SuccessAt:
		return episode.Success
	case ep.Stop != episode.StopAnswered:
		return episode.Limit
	case ep.Reward != nil:
		return episode.Failure
	}
	return episode.Success
}

// described is the part of a task that is kept in the row: what was asked, without what is bulky or secret.
func described(task *episode.Task) episode.Task {
	kept := *task
	kept.Files, kept.Gold = nil, nil
	kept.Verify = make([]episode.Check, len(task.Verify))
	for i, check := range task.Verify {
		check.Tests = nil
		kept.Verify[i] = check
	}
	return kept
}

// faultError carries a fault up to settle.
type faultError struct {
	episode.Fault
	cause error
}

func (f *faultError) Error() string { return f.Class + ": " + f.Message }
func (f *faultError) Unwrap() error { return f.cause }

func faulty(outcome episode.Outcome, class string, err error) error {
	return &faultError{Fault: episode.Fault{Outcome: outcome, Class: class, Message: err.Error()}, cause: err}
}
