package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/policy"
)

// What is done about commands that the policy does not simply allow.
const (
	PolicyEnforce = "enforce" // refuse them
	PolicyRecord  = "record"  // run them, with the verdict in the trace
	PolicyApprove = "approve" // have somebody decide; what is blocked is refused nevertheless
	PolicyOff     = "off"     // run them, and judge nothing
)

// CheckPolicyMode says whether there is such a mode.
func CheckPolicyMode(mode string) error {
	modes := []string{PolicyEnforce, PolicyRecord, PolicyApprove, PolicyOff}
	if !slices.Contains(modes, mode) {
		return fmt.Errorf("command_policy is %q; one of %s", mode, strings.Join(modes, ", "))
	}
	return nil
}

// CommandPolicy decides about the shell commands of episodes: those of the terminal, and what is typed into a shell in
// the background. It is shared by all workers.
type CommandPolicy struct {
	Mode     string
	Approver Approver   // for PolicyApprove
	Allowed  *AllowList // commands that were approved for good; without one, an answer holds for its episode alone
}

// Approver decides about a command that somebody has to agree to. It is asked from many goroutines. The context is the
// call's. An error is the approver's own trouble and ends the episode; who cannot be reached in time denies.
type Approver interface {
	Approve(ctx context.Context, q Question) (Answer, error)
}

// Question is a command that somebody has to agree to.
type Question struct {
	Command string `json:"command"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Dir     string `json:"dir,omitempty"` // where it would run, if that is known
	Tool    string `json:"tool"`
}

// Answer is what the approver says.
type Answer struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"-"` // who decided
}

// The decisions.
const (
	ApproveOnce    = "once"
	ApproveSession = "session" // and whenever the episode runs this command again
	ApproveAlways  = "always"  // and in later episodes and runs
	ApproveDeny    = "deny"
)

// Hook is the policy as the registry knows it; nil when it is off.
func (p *CommandPolicy) Hook() []registry.Hook {
	if p.Mode == PolicyOff {
		return nil
	}
	return []registry.Hook{{Name: "command policy", Before: p.before}}
}

// before judges the command of a call.
func (p *CommandPolicy) before(ctx context.Context, env *registry.Env, call *registry.Pending) error {
	q, ctxOf, ok := questioned(env.Session, call)
	if !ok {
		return nil
	}
	verdict := policy.Check(q.Command, ctxOf)
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
	case p.Allowed.has(q):
		call.Trace.Verdict.Decision = "approved by list"
		return nil
	case p.Mode == PolicyEnforce:
		call.Trace.Verdict.Decision = "refused by policy"
		return refusal(q, "would need somebody's approval, and nobody can be asked")
	}
	return p.ask(ctx, env.Session, call, q)
}

// ask has the approver decide, unless the episode knows the answer already.
func (p *CommandPolicy) ask(ctx context.Context, session *registry.Session, call *registry.Pending, q Question) error {
	known := approvalsOf(session)
	answer, have := known.find(q)
	if !have {
		var err error
		if answer, err = p.Approver.Approve(ctx, q); err != nil {
			return fmt.Errorf("ask for approval: %w", err)
		}
		if answer.Decision != ApproveOnce {
			known.keep(q, answer)
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

// refusal is what the model gets instead of the command's output.
func refusal(q Question, because string) error {
	return &registry.Failure{
		Class: "blocked", Status: episode.CallDenied,
		Message: fmt.Sprintf("the command was not run: it %s. Rule %s: it %s. Find another way, and do not disguise the command.", because, q.Rule, q.Reason),
		Extra:   map[string]any{"output": "", "exit_code": -1, "status": "blocked", "rule": q.Rule, "reason": q.Reason},
	}
}

// questioned finds the shell code of a call, and what is known of the shell that gets it.
func questioned(session *registry.Session, call *registry.Pending) (Question, policy.Context, bool) {
	q := Question{Tool: call.Tool.Name}
	switch call.Tool.Name {
	case "terminal":
		var args struct{ Command, Workdir string }
		if json.Unmarshal(call.Arguments, &args) != nil || call.Tool.Toolset != terminalToolset {
			return q, policy.Context{}, false
		}
		known := shellOf(session).judged(args.Workdir)
		q.Command, q.Dir = args.Command, known.Dir
		return q, known, true
	case "process":
		var args struct {
			Action, Data string
			SessionID    string `json:"session_id"`
		}
		if json.Unmarshal(call.Arguments, &args) != nil || call.Tool.Toolset != terminalToolset {
			return q, policy.Context{}, false
		}
		p := processesOf(session).find(args.SessionID)
		if p == nil || args.Action != "write" && args.Action != "submit" || !policy.ReadsCommands(p.command) {
			return q, policy.Context{}, false
		}
		q.Command, q.Dir = approvalsOf(session).typed(p.id, args.Data, args.Action == "submit"), p.dir
		return q, policy.Context{Dir: p.dir}, true
	}
	return q, policy.Context{}, false
}

// judged is what the policy may know of the shell that the next command gets.
func (s *shellState) judged(workdir string) policy.Context {
	setup := s.exports()
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.now.dir
	switch {
	case path.IsAbs(workdir):
		dir = path.Clean(workdir)
	case workdir != "" && dir != "":
		dir = path.Join(dir, workdir)
	}
	return policy.Context{Dir: dir, Setup: setup + s.now.functions + "\n" + s.now.aliases}
}

// approvals are the answers that an episode has, and what was typed into its shells so far.
type approvals struct {
	mu      sync.Mutex // guards the rest
	answers map[string]Answer
	lines   map[string]string // by process: what has no end of line yet
}

func approvalsOf(s *registry.Session) *approvals {
	return registry.State(s, "tools.approvals", func() *approvals {
		return &approvals{answers: map[string]Answer{}, lines: map[string]string{}}
	})
}

func (a *approvals) find(q Question) (Answer, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.answers[q.key()]
	return answer, ok
}

func (a *approvals) keep(q Question, answer Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[q.key()] = answer
}

// typed adds to the line that is being typed into a shell, and returns all of it: a command may come in pieces.
func (a *approvals) typed(process, data string, end bool) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	line := a.lines[process] + data
	if end {
		line += "\n"
	}
	a.lines[process] = line[strings.LastIndexByte(line, '\n')+1:]
	return line
}

// key is the same for the same command under the same rule.
func (q Question) key() string { return q.Rule + " " + policy.Canonical(q.Command) }
