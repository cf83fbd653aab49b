package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"golang.org/x/term"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// policyMode says what is done about commands that the policy does not allow outright: without isolation from the machine they
// are refused. The dataset's own solutions run without approval, like its setups and verifiers, but a blocked command is refused
// to them, too.
func (f *File) policyMode() string {
	if f.Commands.Policy != "" {
		return f.Commands.Policy
	}
	mode := defaultPolicy(f.Sandbox.Backend)
	if mode == tools.PolicyEnforce && f.scriptedCommands() {
		return tools.PolicyApprove
	}
	return mode
}

// scriptedCommands reports whether the scripted server writes the commands and the run file has no policy for them.
func (f *File) scriptedCommands() bool { return f.Commands.Policy == "" && f.Scripted.Policy != "" }

func defaultPolicy(backend string) string {
	if sandbox.Kinds()[backend].SharesMachine {
		return tools.PolicyEnforce
	}
	return tools.PolicyRecord
}

// openCommandPolicy opens the command policy and its approver.
func (e *Experiment) openCommandPolicy(context.Context) error {
	f := e.File
	e.commands = &tools.CommandPolicy{Mode: f.policyMode(), Allowed: new(tools.AllowList)}
	if f.Commands.Allow != "" {
		list, err := tools.OpenAllowList(f.Commands.Allow)
		if err != nil {
			return err
		}
		e.commands.Allowed = list
	}
	asksPrompt, asksModel := slices.Equal(f.Commands.Approver, []string{"prompt"}), slices.Equal(f.Commands.Approver, []string{"model"})
	if len(f.Commands.Approver) > 0 && !asksPrompt && !asksModel {
		if _, err := exec.LookPath(f.Commands.Approver[0]); err != nil {
			return fmt.Errorf("approver: %w", err)
		}
	}
	switch {
	case e.commands.Mode != tools.PolicyApprove:
	case f.scriptedCommands() || f.NoUser: // a proof of the tasks asks no approver, and runs nothing that is blocked
		e.commands.Approver = agreed{by: "dataset"}
	case asksPrompt:
		if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
			return errors.New("approver prompt needs a terminal; name a command, or choose command_policy enforce or record")
		}
		e.commands.Approver = &tools.PromptApprover{In: os.Stdin, Out: os.Stderr}
	case asksModel:
		return e.openApproverModel()
	default:
		e.commands.Approver = tools.CommandApprover{Args: f.Commands.Approver}
	}
	return nil
}

// approverTokens is the most tokens of a decision, reasoning included.
const approverTokens = 4096

// openApproverModel opens the model that judges commands, at the agent's endpoint unless another is named.
func (e *Experiment) openApproverModel() error {
	f := e.File
	side := sideModel{record.Approver, f.Commands.ApproverModel, f.Commands.ApproverBaseURL, f.Commands.ApproverAPIKeyEnv}
	client, err := e.openSide(side, model.Config{
		Settings: model.Settings{MaxTokens: approverTokens},
		Patience: model.Patience{Timeout: tools.ApproveTime, Retries: 2},
	})
	if err != nil {
		return err
	}
	e.commands.Approver = tools.ModelApprover{Model: client}
	return nil
}

// hooks are the hooks of an episode's calls.
func (e *Experiment) hooks(ep *episode.Episode, ask model.Ask) []registry.Hook {
	policy := *e.commands
	if _, already := policy.Approver.(agreed); policy.Approver != nil && !already {
		policy.Approver = remembered{policy.Approver, model.AskerOf(ep), ask}
	}
	return policy.Hook()
}

// CallerPolicy is the policy of calls that a user makes by hand: typing a command approves it. Blocked commands are refused in
// sandboxes without isolation from the machine.
func CallerPolicy(asked, backend string) *tools.CommandPolicy {
	mode := cmp.Or(asked, defaultPolicy(backend))
	if mode == tools.PolicyApprove || asked == "" && mode == tools.PolicyEnforce {
		return &tools.CommandPolicy{Mode: tools.PolicyApprove, Approver: agreed{by: "caller"}}
	}
	return &tools.CommandPolicy{Mode: mode}
}

// AgentPolicy is the policy of calls that an agent makes outside of a run, whose user is not asked.
func AgentPolicy(asked, backend string) *tools.CommandPolicy {
	return &tools.CommandPolicy{Mode: cmp.Or(asked, defaultPolicy(backend))}
}

// agreed approves every command, as the caller or the dataset wrote it.
type agreed struct{ by string }

func (a agreed) Approve(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{Decision: tools.ApproveOnce, By: a.by}, nil
}
