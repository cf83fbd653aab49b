package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"trajgen/registry"
)

// secrets are the values that this process holds and no result may show: the endpoints' keys, secret headers, and what
// tools and plugins take from the environment. They are named by their variables.
func (f *runFile) secrets(reg *registry.Registry) *registry.Secrets {
	names := []string{cmp.Or(f.APIKeyEnv, "OPENAI_API_KEY")}
	if f.UserAPIKeyEnv != "" {
		names = append(names, f.UserAPIKeyEnv)
	}
	for _, name := range f.HeaderEnv {
		names = append(names, name)
	}
	for _, tool := range reg.Tools() {
		names = append(names, tool.RequiresEnv...)
	}
	for _, plugin := range f.Plugins {
		names = append(names, plugin.EnvFrom...)
	}
	values := map[string]string{}
	for _, name := range names {
		values[name] = os.Getenv(name)
	}
	return registry.NewSecrets(values)
}

// resultLimits bound what a model gets of a call.
func (f *runFile) resultLimits() registry.ResultLimits {
	return registry.ResultLimits{Tools: f.ResultLimits, Turn: f.TurnResultLimit}
}

// checkResultLimits finds limits for tools that do not exist.
func (f *runFile) checkResultLimits(reg *registry.Registry) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(f.ResultLimits)) {
		if _, ok := reg.Tool(name); !ok {
			errs = append(errs, fmt.Errorf("result_limits: there is no tool %q (trajgen tools list shows them)", name))
		}
	}
	return errors.Join(errs...)
}
