package tools

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// CommandSettings say what happens to shell commands that could do harm, as in the run file.
type CommandSettings struct {
	Policy            string   `yaml:"policy" flag:"command-policy" experiment:"given" help:"shell commands that could do harm: enforce (refuse them; the default with local and ssh), record (run them, with the verdict in the trace; the default elsewhere), approve (ask the approver) or off"`
	Approver          []string `yaml:"approver,omitempty" experiment:"in command_policy" help:"who decides with command_policy approve: prompt, model, or a command with its arguments"`
	ApproverModel     string   `yaml:"approver_model" experiment:"in command_policy" help:"model that decides with approver model"`
	ApproverBaseURL   string   `yaml:"approver_base_url" experiment:"no" help:"endpoint of the approver's model (default: base_url)"`
	ApproverAPIKeyEnv string   `yaml:"approver_api_key_env" experiment:"no" help:"environment variable that holds that endpoint's key (default with base_url: api_key_env)"`
	Allow             string   `yaml:"allow" flag:"allow-commands" experiment:"no" help:"file of commands that were approved for good; the approver adds to it"`
}

// Variables are the variables whose values are keys.
func (c CommandSettings) Variables() []string { return []string{c.ApproverAPIKeyEnv} }

// Validate says what is wrong with the section.
func (c CommandSettings) Validate() error {
	if c.Policy != "" {
		if err := CheckPolicyMode(c.Policy); err != nil {
			return err
		}
	}
	var problems []error
	switch {
	case c.Policy == PolicyApprove && len(c.Approver) == 0:
		problems = append(problems, errors.New("command_policy approve needs an approver: prompt, model, or a command with its arguments"))
	case c.Policy != PolicyApprove && len(c.Approver) > 0:
		problems = append(problems, fmt.Errorf("approver is for command_policy approve, and it is %s", cmp.Or(c.Policy, "not given")))
	}
	asksModel := slices.Equal(c.Approver, []string{"model"})
	if asksModel != (c.ApproverModel != "") {
		problems = append(problems, errors.New("approver model and approver_model NAME go together"))
	}
	return errors.Join(problems...)
}
