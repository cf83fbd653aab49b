package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"trajgen/pipeline/model"
	"trajgen/registry"
)

// Secrets are the values that are masked in results: the endpoints' keys, secret headers, and the variables that tools and
// plugins take from the environment. Each is named by its variable.
func (f *File) Secrets(reg *registry.Registry) *registry.Secrets {
	names := []string{cmp.Or(f.Model.APIKeyEnv, "OPENAI_API_KEY"), f.User.APIKeyEnv, f.Context.SummaryAPIKeyEnv, f.Web.Summary.APIKeyEnv, f.Commands.ApproverAPIKeyEnv}
	for _, m := range f.Sweep.Model {
		names = append(names, m.APIKeyEnv)
	}
	for _, next := range f.Model.Fallbacks {
		names = append(names, next.APIKeyEnv)
	}
	for _, m := range f.MOA.All() {
		names = append(names, m.APIKeyEnv)
	}
	for _, name := range f.Model.HeaderEnv {
		names = append(names, name)
	}
	for _, tool := range reg.Tools() {
		names = append(names, tool.RequiresEnv...)
	}
	names = append(append(names, f.Web.KeyEnvs()...), f.Browser.Elsewhere().Variable())
	names = append(append(names, f.Media.KeyEnvs()...), f.Home.Variable())
	names = append(names, f.Messages.Variables()...)
	names = append(names, f.MCP.Variables()...)
	names = append(names, f.RL.KeyEnvs()...)
	for _, plugin := range f.Tools.Plugins {
		names = append(names, plugin.EnvFrom...)
	}
	values := map[string]string{}
	for _, name := range names {
		if name != "" {
			values[name] = os.Getenv(name)
		}
	}
	return registry.NewSecrets(values)
}

// Results bound the results that a model gets.
func (t Tools) Results() registry.ResultLimits {
	return registry.ResultLimits{Tools: t.ResultLimits, Turn: t.TurnResultLimit}
}

// checkToolChoice refuses a tool_choice that names an unknown tool.
func checkToolChoice(choice string, reg *registry.Registry) error {
	switch choice {
	case "", model.ToolChoiceAuto, model.ToolChoiceNone, model.ToolChoiceRequired, model.ToolChoiceFirst:
		return nil
	}
	if _, ok := reg.Tool(choice); !ok {
		return fmt.Errorf("tool_choice: tool %q does not exist (want auto, none, required, required_first or one that trajgen tools list shows)", choice)
	}
	return nil
}

// checkResultLimits refuses limits for unknown tools.
func (t Tools) checkResultLimits(reg *registry.Registry) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(t.ResultLimits)) {
		if _, ok := reg.Tool(name); !ok {
			errs = append(errs, fmt.Errorf("result_limits: tool %q does not exist (trajgen tools list shows them)", name))
		}
	}
	return errors.Join(errs...)
}
