package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"trajgen/pipeline/model"
	"trajgen/registry"
)

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
