package run

import (
	"fmt"

	"trajgen/datasets"
)

// chosen records how many tasks each step of the choice left.
func (t *tasks) chosen(steps []datasets.Step) {
	if !t.surveyed {
		t.steps = steps
	}
}

// tellChosen logs, once, what was left out.
func (t *tasks) tellChosen() {
	t.Logger.Info("tasks chosen", "steps", t.steps)
	if text := LeftOut(t.steps); text != "" {
		fmt.Fprintln(t.warnings, text)
	}
}

// LeftOut describes the steps that left out tasks.
func LeftOut(steps []datasets.Step) string {
	if len(steps) == 0 || steps[len(steps)-1].Left == steps[0].Left {
		return ""
	}
	text := fmt.Sprintf("of %d tasks that were read", steps[0].Left)
	for i, step := range steps[1:] {
		if step.Left < steps[i].Left {
			text += fmt.Sprintf(", %s left %d", step.Name, step.Left)
		}
	}
	return text
}
