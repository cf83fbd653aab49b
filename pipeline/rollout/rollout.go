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
	"fmt"
	"log/slog"
	"slices"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/registry"
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

	// Hooks makes the hooks of an episode's calls; nil makes none. Whom they ask, they ask with ask.
	Hooks func(ep *episode.Episode, ask model.Ask) []registry.Hook

	Secrets    *registry.Secrets // masked in results; nil masks nothing
	Results    registry.ResultLimits
	Guardrails string // GuardOff to GuardStop; "" is GuardRecord

	// Services makes what else an episode has for its tools; nil makes nothing. Whom they ask, they ask with ask.
	Services func(task *episode.Task, ep *episode.Episode, ask model.Ask) []any

	// Toolsets are what a task has beside the toolsets that were drawn for it, and what it does without; nil is neither.
	Toolsets func(task *episode.Task) (more, without []string)
	// Skills makes an episode's skills; nil where the run has none, and so may be what it returns.
	Skills func(task *episode.Task, ep *episode.Episode) Skills

	Now    func() time.Time
	Logger *slog.Logger // nil is silent

	Context    Context
	Spending   Spending
	Delegation delegate.Settings

	Sees   bool            // the model takes images
	Images registry.Images // keeps those that it is shown; nil keeps none

	Recorder *record.Recorder // of what episodes in play get from outside; nil keeps nothing

	plainer plainer
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

// SuccessAt is the reward from which an episode counts as a success: a weighted sum may fall short of 1 by rounding.
const SuccessAt = 1 - 1e-9

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
		if err := a.equip(ctx); err != nil {
			return err
		}
		if wants := task.Setup != "" || len(task.Files) > 0 || task.Image != "" || task.Cwd != ""; a.Sandboxes.Furnish && wants {
			if _, err := a.sandbox.open(ctx); err != nil {
				return err
			}
		}
		if err := a.converse(ctx); err != nil {
			return err
		}
		return a.judge(ctx)
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
	registry *registry.Registry // that toolset is from
	toolset  *registry.Toolset
	enabled  []string // the toolsets that it is of
	have     []any    // what the tools find beside the sandbox
	skills   Skills   // nil without any
	skillset string   // end of the system message that lists them
	session  *registry.Session
	sandbox  *lazySandbox
	user     *user                // nil when the task has none
	agents   *subagents           // nil for one that cannot delegate
	parent   *attempt             // nil unless it is a subagent's
	tools    []string             // that a subagent may have
	guest    bool                 // sandbox is the parent's
	guard    *registry.Guardrails // nil when they are off
	limits   episode.Limits
	most     float64 // that it may cost, in USD; 0 sets no limit
	clock    agentTime
	talk     *model.Conversation
	prefill  []episode.Message // of the run's prompts
	fits     fitter
	account  account
	began    time.Time // in this process
	progress progress
	logger   *slog.Logger
}

// begin sets the episode up without touching anything outside it.
func (p *Player) begin(task *episode.Task, ep *episode.Episode) *attempt {
	a := &attempt{Player: p, task: task, ep: ep, logger: p.Logger}
	a.fits.attempt, a.account.attempt, a.progress.attempt = a, a, a
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
	a.talk = model.Begin(model.AskerOf(ep), ep.Sampling, ep.Key.RequestSeed)
	a.sandbox = newSandbox(a)
	return a
}

// equip freezes what the model will be shown.
func (a *attempt) equip(ctx context.Context) error {
	a.skills, a.ep.Skills = nil, nil
	if a.Skills != nil {
		a.skills = a.Skills(a.task, a.ep)
	}
	if err := a.choose(); err != nil {
		return err
	}
	a.have, a.ep.Memory, a.ep.Recalled = nil, nil, ""
	a.skillset = a.introduce()
	if a.toolset.Has(memoryTool) {
		a.ep.Memory = newMemory(a.task)
		a.have = append(a.have, a.ep.Memory)
	}
	if a.task.User != nil {
		var err error
		if a.user, err = newUser(a); err != nil {
			return err
		}
		a.have = append(a.have, a.user)
	}
	if a.skills != nil {
		if a.have = append(a.have, a.skills); !a.guest {
			a.sandbox.furnished = a.skills.Furnish
		}
	}
	if a.Services != nil {
		a.have = append(a.have, a.Services(a.task, a.ep, a.progress.inquire)...)
	}
	a.join()
	if a.toolset.Has(delegate.Tool) {
		a.agents = &subagents{attempt: a}
		a.have = append(a.have, a.agents)
	}
	a.start()
	return nil
}

// shared is a service that a subagent has in common with its parent, such as web sites, which are one world for both.
type shared interface{ Join(services []any) }

// join connects a subagent's services with its parent's.
func (a *attempt) join() {
	if a.parent == nil {
		return
	}
	for _, service := range a.have {
		if s, ok := service.(shared); ok {
			s.Join(a.parent.have)
		}
	}
}

// choose takes the episode's tools as the model's server takes them.
func (a *attempt) choose() error {
	ep := a.ep
	a.registry = a.shown()
	if s := a.progress.next(); s != nil && s.Turn == 0 && !slices.Equal(s.Quirks, a.registry.Quirks()) {
		a.registry = a.registry.WithQuirks(s.Quirks) // which the next request is about
	}
	toolset, err := a.selected()
	if err != nil {
		return faulty(episode.ToolError, "toolset", err)
	}
	if len(toolset.Names()) == 0 && registry.Promise(ep.Toolsets) && a.parent == nil {
		// The draw promised tools that are not there: what a model does without them says nothing about it.
		return faulty(episode.ToolError, "no_tools", fmt.Errorf("no tool of the toolsets %v is available", ep.Toolsets))
	}
	a.toolset, ep.Tools = toolset, append([]json.RawMessage{}, toolset.Schemas()...)
	if !a.guest {
		a.sandbox.more = toolset.Memory()
	}
	return nil
}

func (a *attempt) selected() (*registry.Toolset, error) {
	if a.parent != nil {
		return a.registry.Pick(a.tools), nil
	}
	enabled, disabled := a.ep.Toolsets, a.disabled()
	if a.Toolsets != nil {
		more, without := a.Toolsets(a.task)
		enabled, disabled = slices.Concat(enabled, more), slices.Concat(disabled, without)
	}
	a.enabled = enabled
	return a.registry.Select(enabled, disabled)
}

// start begins the session of the tools that were chosen.
func (a *attempt) start() {
	var hooks []registry.Hook
	if a.Hooks != nil {
		hooks = a.Hooks(a.ep, a.progress.inquire)
	}
	if a.Guardrails != GuardOff {
		a.guard = registry.NewGuardrails()
	}
	var host *registry.Session
	if a.guest {
		host = a.parent.session
	}
	a.session = a.toolset.Session(registry.SessionConfig{
		Sandbox: a.sandbox.open, Now: a.Now, Logger: a.logger, Hooks: hooks, Guardrails: a.guard, Services: a.have,
		Secrets: a.Secrets, Limits: a.Results, Clock: a.clock.acting, Sees: a.Sees, Images: a.Images,
		Host: host, Folder: a.ep.Key.Path,
	})
}

// end closes what the episode holds, whatever happened to it.
func (a *attempt) end() {
	if a.agents != nil {
		a.agents.playing.Wait()
	}
	if a.session != nil {
		a.ep.Calls = append(a.ep.Calls, a.session.Trace()...)
		a.session.Close()
	}
	if a.skills != nil {
		a.ep.Skills = a.skills.Trace(a.ep.Calls)
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
	switch {
	case err == nil:
		ep.Outcome = outcome(ep)
		return nil
	case ctx.Err() != nil: // whatever else went wrong may be for that reason
		return context.Cause(ctx)
	case differed != nil: // whatever the call said in which it was found
		ep.Differed = differed
		startOver(ep, a.logger, "resume_differs", describe(ep.Differed))
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
	kept.Files, kept.Gold, kept.Subagents = nil, nil, nil
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
