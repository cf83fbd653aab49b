package versus

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/run"
)

// same are the settings that two arms always have in common, as they say what is played and how it is judged.
var same = []string{"dataset", "sandbox.verifier"}

// free are settings that say nothing of how a task is played.
var free = []string{"seed"}

// identity says in what two experiments differ beyond what may change.
func (s Settings) identity(base, candidate run.Manifest) error {
	var wrong []error
	for _, name := range s.Changes {
		if slices.Contains(same, name) {
			wrong = append(wrong, fmt.Errorf("changes names %s, which both must have in common", name))
		}
	}
	keys := map[string]string{}
	for _, setting := range candidate.RunFile.Settings() {
		keys[strings.ReplaceAll(setting.Flag, "-", "_")] = setting.Key
	}
	for _, line := range run.Difference(base.Experiment, candidate.Experiment) {
		name, _, _ := strings.Cut(line, ":")
		key := keys[name]
		section, _, _ := strings.Cut(key, ".")
		may := slices.ContainsFunc(s.Changes, func(allowed string) bool { return allowed == name || allowed == key || allowed == section })
		switch {
		case slices.Contains(free, name), may && !slices.Contains(same, section) && !slices.Contains(same, key) && name != "scorers":
		default:
			wrong = append(wrong, fmt.Errorf("the arms differ in %s", line))
		}
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Errorf("changes (--changes) names the sections and keys in which they may: now %s", strings.Join(s.Changes, ", ")))
	}
	return errors.Join(wrong...)
}
