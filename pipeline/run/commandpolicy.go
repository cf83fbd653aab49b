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
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// Commands says what happens to shell commands that could do harm.
type Commands struct {
	Policy            string   `yaml:"policy" flag:"command-policy" experiment:"given" help:"shell commands that could do harm: enforce (refuse them; the default with local and ssh), record (run them, with the verdict in the trace; the default elsewhere), approve (ask the approver) or off"`
	Approver          []string `yaml:"approver,omitempty" experiment:"in command_policy" help:"who decides with command_policy approve: prompt, model, or a command with its arguments"`
	ApproverModel     string   `yaml:"approver_model" experiment:"in command_policy" help:"model that decides with approver model"`
	ApproverBaseURL   string   `yaml:"approver_base_url" experiment:"no" help:"endpoint of the approver's model (default: base_url)"`
	ApproverAPIKeyEnv string   `yaml:"approver_api_key_env" experiment:"no" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
	Allow             string   `yaml:"allow" flag:"allow-commands" experiment:"no" help:"file of commands that were approved for good; the approver adds to it"`
}

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

// checkCommandPolicy says what is wrong with the keys of the command policy.
func (f *File) checkCommandPolicy() error {
	mode := f.policyMode()
	if err := tools.CheckPolicyMode(mode); err != nil {
		return err
	}
	var problems []error
	switch {
	case f.Commands.Policy == tools.PolicyApprove && len(f.Commands.Approver) == 0:
		problems = append(problems, errors.New("command_policy approve needs an approver: prompt, model, or a command with its arguments"))
	case f.Commands.Policy != tools.PolicyApprove && len(f.Commands.Approver) > 0:
		problems = append(problems, fmt.Errorf("approver is for command_policy approve, and it is %s", cmp.Or(f.Commands.Policy, "not given")))
	}
	asksModel := slices.Equal(f.Commands.Approver, []string{"model"})
	if asksModel != (f.Commands.ApproverModel != "") {
		problems = append(problems, errors.New("approver model and approver_model NAME go together"))
	}
	return errors.Join(problems...)
}

// openCommandPolicy opens the command policy and its approver.
func (e *Experiment) openCommandPolicy(ctx context.Context) error {
	f := e.File
	e.commands = &tools.CommandPolicy{Mode: f.policyMode(), Allowed: new(tools.AllowList)}
	if f.Commands.Allow != "" {
		list, err := tools.OpenAllowList(f.Commands.Allow)
		if err != nil {
			return err
		}
		e.commands.Allowed = list
	}
	asksCommand := len(f.Commands.Approver) > 0 && !slices.Equal(f.Commands.Approver, []string{"prompt"}) && !slices.Equal(f.Commands.Approver, []string{"model"})
	if asksCommand {
		if _, err := exec.LookPath(f.Commands.Approver[0]); err != nil {
			return fmt.Errorf("approver: %w", err)
		}
	}
	switch {
	case e.commands.Mode != tools.PolicyApprove:
	case f.scriptedCommands() || f.NoUser: // a proof of the tasks asks no approver, and runs nothing that is blocked
		e.commands.Approver = agreed{by: "dataset"}
	case slices.Equal(f.Commands.Approver, []string{"prompt"}):
		if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stderr.Fd())) {
			return errors.New("approver prompt needs a terminal; name a command, or choose command_policy enforce or record")
		}
		e.commands.Approver = &tools.PromptApprover{In: os.Stdin, Out: os.Stderr}
	case slices.Equal(f.Commands.Approver, []string{"model"}):
		return e.openApproverModel(ctx)
	default:
		e.commands.Approver = tools.CommandApprover{Args: f.Commands.Approver}
	}
	return nil
}

// approverTokens is the most tokens of a decision, reasoning included.
const approverTokens = 4096

// openApproverModel opens the model that judges commands, at the agent's endpoint unless another is named.
func (e *Experiment) openApproverModel(ctx context.Context) error {
	f := e.File
	client, err := sideModel{record.Approver, f.Commands.ApproverModel, f.Commands.ApproverBaseURL, f.Commands.ApproverAPIKeyEnv}.open(&e.models, model.Config{
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
func (e *Experiment) hooks(ep *episode.Episode, ask rollout.Ask) []registry.Hook {
	policy := *e.commands
	if _, already := policy.Approver.(agreed); policy.Approver != nil && !already {
		asker := model.Asker{Episode: ep.ID, Attempt: ep.Attempt, Task: ep.Key.Task}
		policy.Approver = remembered{policy.Approver, asker, ask}
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

// CheckCallPolicy checks the name of a mode; "" is the backend's own.
func CheckCallPolicy(mode string) error {
	if mode == "" {
		return nil
	}
	return tools.CheckPolicyMode(mode)
}

// agreed approves every command, as the caller or the dataset wrote it.
type agreed struct{ by string }

func (a agreed) Approve(context.Context, tools.Question) (tools.Answer, error) {
	return tools.Answer{Decision: tools.ApproveOnce, By: a.by}, nil
}
