package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/policy"
)

// What happens to commands that the policy does not allow.
const (
	PolicyEnforce = "enforce" // refuse them
	PolicyRecord  = "record"  // run them, with the verdict in the trace
	PolicyApprove = "approve" // ask the approver; blocked commands are refused all the same
	PolicyOff     = "off"     // run them, without judging them
)

// CheckPolicyMode refuses an unknown mode.
func CheckPolicyMode(mode string) error {
	modes := []string{PolicyEnforce, PolicyRecord, PolicyApprove, PolicyOff}
	if !slices.Contains(modes, mode) {
		return fmt.Errorf("command_policy is %q; one of %s", mode, strings.Join(modes, ", "))
	}
	return nil
}

// CommandPolicy decides about the shell commands of episodes: those of the terminal, and what is typed into a shell in the
// background. All workers share it.
type CommandPolicy struct {
	Mode     string
	Approver Approver   // for PolicyApprove
	Allowed  *AllowList // commands approved for good; nil makes each answer valid for its episode only
}

// Approver decides about a command that needs approval. It is called from many goroutines. The context is the call's. An error
// is the approver's fault and ends the attempt; an approver that does not answer in time denies.
type Approver interface {
	Approve(ctx context.Context, q Question) (Answer, error)
}

// Question is a command that needs approval.
type Question struct {
	Command string `json:"command"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Dir     string `json:"dir,omitempty"` // where it would run, if known
	Tool    string `json:"tool"`

	Asker model.Asker `json:"-"` // the episode that wants to run it
}

// Answer is an approver's decision.
type Answer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"-"` // what decided: the kind of approver
	// Usage is the cost of asking a model; nil when none was asked.
	Usage *episode.Usage `json:"-"`
}

// The decisions.
const (
	ApproveOnce    = "once"
	ApproveSession = "session" // and whenever the episode runs this command again
	ApproveAlways  = "always"  // and in later episodes and runs
	ApproveDeny    = "deny"
)

// Hook returns the policy as a hook of the registry; nil when it is off.
func (p *CommandPolicy) Hook() []registry.Hook {
	if p.Mode == PolicyOff {
		return nil
	}
	return []registry.Hook{{Name: "command policy", Before: p.before}}
}

// before judges the command of a call.
func (p *CommandPolicy) before(ctx context.Context, env *registry.Env, call *registry.Pending) error {
	q, judge, sent := questioned(ctx, env, call)
	if judge == nil {
		return nil
	}
	err := p.decide(ctx, env.Session, call, q, judge)
	if err == nil {
		sent()
	}
	return err
}

// judgement judges the command of a call, without the excepted rules.
type judgement func(except []string) policy.Verdict

// decide lets a call pass, or returns its refusal.
func (p *CommandPolicy) decide(ctx context.Context, session *registry.Session, call *registry.Pending, q Question, judge judgement) error {
	verdict := judge(nil)
	call.Trace.Verdict = &episode.Verdict{Verdict: string(verdict.Verdict), Rule: verdict.Rule, Reason: verdict.Reason}
	q.Rule, q.Reason = verdict.Rule, verdict.Reason
	switch {
	case verdict.Verdict == policy.Allow:
		return nil
	case p.Mode == PolicyRecord:
		call.Trace.Verdict.Decision = "recorded"
		return nil
	case verdict.Verdict == policy.Block:
		call.Trace.Verdict.Decision = "refused by policy"
		return refusal(q, "is never run here")
	case p.Allowed.has(q, judge):
		call.Trace.Verdict.Decision = "approved by list"
		return nil
	case p.Mode == PolicyEnforce:
		call.Trace.Verdict.Decision = "refused by policy"
		return refusal(q, "needs an approval, and this run has no approver")
	}
	return p.ask(ctx, session, call, q)
}

// ask asks the approver, unless the episode has an answer already.
func (p *CommandPolicy) ask(ctx context.Context, session *registry.Session, call *registry.Pending, q Question) error {
	known := registry.State(session, "tools.approvals", func() *sync.Map { return new(sync.Map) })
	// The same command does something else in another directory.
	question := q.Dir + "\x00" + q.key()
	remembered, have := known.Load(question)
	answer, _ := remembered.(Answer)
	if !have {
		var err error
		if answer, err = p.Approver.Approve(ctx, q); err != nil {
			return fmt.Errorf("ask for approval: %w", err)
		}
		call.Trace.Verdict.Usage, answer.Usage = answer.Usage, nil // a remembered answer costs nothing
		if answer.Decision != ApproveOnce {
			known.Store(question, answer)
		}
		if answer.Decision == ApproveAlways {
			if err := p.Allowed.add(q); err != nil {
				return err
			}
		}
	}
	if answer.Decision == ApproveDeny {
		call.Trace.Verdict.Decision = "denied by " + answer.By
		because := "was denied"
		if answer.Reason != "" {
			because += " (" + answer.Reason + ")"
		}
		return refusal(q, because)
	}
	call.Trace.Verdict.Decision = "approved by " + answer.By
	return nil
}

// refusal is the failure that the model gets instead of the command's output.
func refusal(q Question, because string) error {
	return &registry.Failure{
		Class: "blocked", Status: episode.CallDenied,
		Message: fmt.Sprintf("the command was not run: it %s. Rule %s: it %s. Find another way, and do not disguise the command.", because, q.Rule, q.Reason),
		Extra:   map[string]any{"output": "", "exit_code": -1, "status": "blocked", "rule": q.Rule, "reason": q.Reason},
	}
}

// questioned returns the shell code of a call, how to judge it, and what to do when it is let pass. A nil judgement is for a call
// that is not judged.
func questioned(ctx context.Context, env *registry.Env, call *registry.Pending) (q Question, judge judgement, sent func()) {
	q, sent = Question{Tool: call.Tool.Name}, func() {}
	if call.Tool.Toolset != terminalToolset && call.Tool.Toolset != codeToolset { // a plugin may have tools of these names
		return q, nil, sent
	}
	var args struct {
		Command, Workdir, Code, Action, Data string
		SessionID                            string `json:"session_id"`
	}
	if json.Unmarshal(call.Arguments, &args) != nil {
		return q, nil, sent
	}
	shell := shellOf(env.Session)
	switch q.Tool {
	case "terminal":
		known := shell.judged(layoutOf(ctx, env), args.Workdir)
		q.Command, q.Dir = args.Command, known.Dir
		judge = func(except []string) policy.Verdict {
			known.Except = except
			return policy.Check(args.Command, known)
		}
	case "execute_code":
		known := shell.judged(layoutOf(ctx, env), "")
		q.Command, q.Dir = args.Code, known.Dir
		// The calls of the script are judged separately.
		if verdict := policy.CheckCode(args.Code, known); verdict.Verdict != policy.Allow {
			judge = func([]string) policy.Verdict { return verdict }
		}
	case "process":
		p := processesOf(env.Session).find(args.SessionID)
		if p == nil || args.Action != "write" && args.Action != "submit" {
			return q, nil, sent
		}
		if args.Action == "submit" {
			args.Data += "\n"
		}
		typed := p.typed.Load()
		next := *typed
		q.Command, q.Dir = typed.With(args.Data), typed.Context.Dir
		judge = func(except []string) (verdict policy.Verdict) {
			verdict, next = typed.Add(args.Data, except)
			return verdict
		}
		sent = func() { p.typed.Store(&next) }
	}
	return q, judge, sent
}

// layoutOf returns the sandbox's layout, or an empty one without a sandbox; the tool then reports the error.
func layoutOf(ctx context.Context, env *registry.Env) sandbox.Layout {
	box, err := env.Sandbox(ctx)
	if err != nil {
		return sandbox.Layout{}
	}
	return box.Layout()
}

// judged returns what the policy may know of the shell that runs the next command.
func (s *shellState) judged(layout sandbox.Layout, workdir string) policy.Context {
	setup := s.exports()
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := cmp.Or(s.now.dir, layout.Workdir)
	workdir = expandHome(workdir, layout)
	switch {
	case path.IsAbs(workdir):
		dir = path.Clean(workdir)
	case workdir != "" && dir != "":
		dir = path.Join(dir, workdir)
	}
	return policy.Context{Dir: dir, Home: layout.Home, Setup: setup + s.now.functions + "\n" + s.now.aliases}
}

// key is equal for the same command under the same rule.
func (q Question) key() string { return q.Rule + " " + policy.Canonical(q.Command) }
