// Package rollout plays one episode from prompt to reward.
//
// It is the one place where errors become faults: what the model can mend goes back to the model as a tool result,
// what is the machine's doing ends the episode with an outcome that carries no reward.
package rollout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/delegate"
)

// Player plays episodes. It is shared by all workers. Of episodes it holds nothing but the setup that samples
// of one task have in common.
type Player struct {
	Model     model.Model
	User      model.Model // plays the users of tasks that want a model for theirs; nil when there is none
	Registry  *registry.Registry
	Sandboxes Sandboxes

	Prompts  Prompts
	Sampling episode.Sampling // how the model is asked, kept in the row
	Sweep    Sweep            // what of it differs between samples
	Web      string           // mode of the run's web, kept in the row

	Disabled []string // toolsets or tools that no episode gets
	Limits   Limits   // for tasks that name none

	Calls

	// Services makes what else an episode has for its tools; nil makes nothing. Whom they ask, they ask with ask.
	Services func(task *episode.Task, ep *episode.Episode, ask model.Ask) []any

	// Toolsets are what a task has beside the toolsets that were drawn for it, and what it does without; nil is neither.
	Toolsets func(task *episode.Task) (more, without []string)
	// Brings opens what a task brings along, in the sandbox that box opens; nil where no task does, and so may be what it returns.
	Brings func(ctx context.Context, task *episode.Task, box func(context.Context) (sandbox.Sandbox, error)) (Brought, error)
	// Skills makes an episode's skills; nil where the run has none, and so may be what it returns.
	Skills func(task *episode.Task, ep *episode.Episode) Skills

	// Clean finds the clean episode of a twin. Nil where a run has no twins.
	Clean func(*episode.Twin) (*episode.Episode, error)

	// Look sees what the agent of an episode left in its sandbox, if that was opened, before it is judged; nil looks at nothing.
	Look func(ctx context.Context, ep *episode.Episode, sb sandbox.Sandbox)

	Now    func() time.Time
	Logger *slog.Logger // nil is silent

	Context    Context
	Spending   Spending
	Delegation delegate.Settings

	Recorder *record.Recorder // of what episodes in play get from outside; nil keeps nothing

	plainer plainer
}

// Calls says how calls of tools are made, and what the model is shown of their results.
type Calls struct {
	// Hooks makes the hooks of an episode's calls; nil makes none. Whom they ask, they ask with ask.
	Hooks func(ep *episode.Episode, ask model.Ask) []registry.Hook

	Secrets    *registry.Secrets // masked in results; nil masks nothing
	Results    registry.ResultLimits
	Guardrails string // GuardOff to GuardStop; "" is GuardRecord

	Sees   bool            // the model takes images
	Images registry.Images // keeps those that it is shown; nil keeps none
}

// Prompts are the run's own.
type Prompts struct {
	System    string            // system prompt of tasks that bring none
	Ephemeral string            // text that every system message ends with, flagged as the harness's
	Prefill   []episode.Message // said before every task's prompt, flagged as the harness's
}

// The defaults of an episode's limits.
const (
	DefaultTurns = 30
	DefaultTime  = 30 * time.Minute
)

// Play plays ep to its end. An error means that it did not end: see pipeline.Player.
func (p *Player) Play(ctx context.Context, task *episode.Task, ep *episode.Episode) error {
	if err := p.begin(task, ep).play(ctx); err != nil {
		return err
	}
	for sub := range ep.Tree() {
		if sub.Origin != nil {
			sub.Origin.RootReward = ep.Reward
		}
	}
	return nil
}

// play plays the attempt to its end.
func (a *attempt) play(ctx context.Context) error {
	task, ep := a.task, a.ep
	err := func() error {
		defer a.end() // also when a bug of ours panics: the sandbox must not outlive the episode
		if err := a.progress.recall(); err != nil {
			return err
		}
		if err := a.depict(); err != nil {
			return err
		}
		if err := a.kit.equip(ctx); err != nil {
			return err
		}
		if wants := task.Setup != "" || len(task.Files) > 0 || task.Image != "" || task.Build != nil || task.Cwd != "" || task.Root != "" || len(task.Services) > 0; a.Sandboxes.Furnish && wants {
			if _, err := a.sandbox.open(ctx); err != nil {
				return err
			}
		}
		if err := a.converse(ctx); err != nil {
			return err
		}
		if a.Look != nil && a.sandbox.isOpen() {
			if sb, err := a.sandbox.open(ctx); err == nil {
				a.Look(ctx, a.ep, sb)
			}
		}
		return a.judge.verify(ctx)
	}()
	if err = a.settle(ctx, err); err != nil {
		return err
	}
	line := []any{"id", ep.ID, "task", ep.Key.Task, "sample", ep.Key.Sample, "outcome", ep.Outcome, "stop", ep.Stop,
		"turns", len(ep.Turns), "tokens", ep.Usage.Prompt + ep.Usage.Completion, "reward", ep.Reward, "elapsed", ep.Elapsed}
	if ep.Fault != nil {
		line = append(line, "class", ep.Fault.Class, "fault", ep.Fault.Message)
	}
	a.logger.Info("episode ended", line...)
	return nil
}

// attempt is one episode in play.
type attempt struct {
	*Player
	task     *episode.Task
	ep       *episode.Episode
	kit      kit
	sandbox  *lazySandbox
	user     *user      // nil when the task has none
	agents   *subagents // nil for one that cannot delegate
	parent   *attempt   // nil unless it is a subagent's
	twin     *prefix    // nil unless it is the twin of another episode
	tools    []string   // that a subagent may have
	guest    bool       // sandbox is the parent's
	limits   episode.Limits
	most     float64 // that it may cost, in USD; 0 sets no limit
	clock    agentTime
	talk     *model.Conversation
	prefill  []episode.Message // of the run's prompts
	fits     fitter
	account  account
	began    time.Time // in this process
	progress progress
	judge    judge
	logger   *slog.Logger
}

// begin sets the episode up without touching anything outside it.
func (p *Player) begin(task *episode.Task, ep *episode.Episode) *attempt {
	a := &attempt{Player: p, task: task, ep: ep, logger: p.Logger}
	a.kit.attempt, a.fits.attempt, a.account.attempt, a.progress.attempt, a.judge.attempt = a, a, a, a, a
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	a.began = p.Now()
	ep.Started = a.began
	ep.Task = described(task)
	ep.Sampling, ep.Web = p.Sweep.At(p.Sampling, ep.Key.Sample), p.Web
	ep.Messages, ep.Turns, ep.Calls, ep.Tools = []episode.Message{}, []episode.Turn{}, []episode.ToolCall{}, []json.RawMessage{}
	a.limits = episode.Limits{
		Turns:  cmp.Or(task.Limits.Turns, p.Limits.Turns, DefaultTurns),
		Tokens: cmp.Or(task.Limits.Tokens, p.Limits.Tokens),
		Time:   cmp.Or(task.Limits.Time, p.Limits.Time, DefaultTime),
	}
	a.clock, a.most = agentTime{now: p.Now, left: a.limits.Time}, p.Limits.USD
	a.talk = model.Begin(model.AskerOf(ep), ep.Sampling, ep.RequestSeed)
	a.sandbox = newSandbox(a)
	return a
}

// planted is a service that put faults into calls, and says so in the episode when all have ended.
type planted interface{ Planted(ep *episode.Episode) }

// end closes what the episode holds, whatever happened to it.
func (a *attempt) end() {
	if a.agents != nil {
		a.agents.playing.Wait()
	}
	if a.kit.session != nil {
		a.ep.Calls = append(a.ep.Calls, a.kit.session.Trace()...)
		if faults, ok := registry.Service[planted](a.kit.session); ok {
			faults.Planted(a.ep)
		}
		a.kit.session.Close()
	}
	if a.kit.brought != nil && a.parent == nil {
		if err := a.kit.brought.Close(); err != nil {
			a.logger.Warn("what the task brought along does not close", "error", err)
		}
	}
	if a.kit.skills != nil {
		var changed []string
		if !a.guest { // else it is the host's to say
			changed = a.sandbox.changed()
		}
		a.ep.Skills = a.kit.skills.Trace(a.ep.Calls, changed)
	}
	if a.guest {
		a.ep.Sandbox = a.sandbox.described()
	} else {
		a.sandbox.close()
	}
	a.ep.Drift = a.ep.FindDrift()
	a.account.cost()
	a.account.unplayed()
	if a.progress.goesOn() { // all that was left was to judge
		a.progress.mark(len(a.ep.Turns))
	}
	a.ep.Elapsed = a.progress.spent()
}

// settle gives the episode its outcome, or returns the error when it has none.
func (a *attempt) settle(ctx context.Context, err error) error {
	ep := a.ep
	var fault *faultError
	differed, stopped := a.progress.ended()
	if short := a.twin.short(); err == nil && differed == nil && short != nil {
		err, differed = errDiffers, short
	}
	switch {
	case err == nil:
		ep.Outcome = outcome(ep)
		return nil
	case ctx.Err() != nil: // whatever else went wrong may be for that reason
		return context.Cause(ctx)
	case differed != nil: // whatever the call said in which it was found
		ep.Differed = differed
		class := "resume_differs"
		if a.twin != nil {
			class, ep.Twin.Prefix = classDiverged, episode.PrefixDiverged
		}
		startOver(ep, a.logger, class, describe(ep.Differed))
		return nil
	case errors.Is(err, errDamaged):
		startOver(ep, a.logger, "record_damaged", err)
		return nil
	case errors.As(err, &fault) && stopped != nil:
		// Who decides about a call could not be asked, or the answer not be recorded: played again when there is more to spend.
		return stopped
	case errors.As(err, &fault):
		ep.Outcome, ep.Stop = fault.Outcome, episode.StopFault
		ep.Fault, ep.Reward, ep.Rewards = &fault.Fault, nil, nil
		return nil
	}
	return err
}

// outcome names an ending that was the agent's doing. An episode without a verifier succeeded when it was answered.
func outcome(ep *episode.Episode) episode.Outcome {
	switch {
	case ep.Reward != nil && *ep.Reward >= episode.SuccessAt:
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
	kept := task.Placeless()
	kept.Files, kept.Gold, kept.Subagents = nil, nil, nil
	for i := range kept.Services {
		kept.Services[i].Files = nil
	}
	for i := range kept.Verify {
		kept.Verify[i].Tests = nil
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
