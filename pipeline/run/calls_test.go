package run

import (
	"strings"
	"testing"

	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/tools"
)

func TestResultLimitsOfUnknownTools(t *testing.T) {
	reg, err := NewRegistry(File{})
	if err != nil {
		t.Fatal(err)
	}
	f := Tools{ResultLimits: map[string]int{"terminal": 1000, "terminl": 1000}}
	if err := f.checkResultLimits(reg); err == nil || strings.Count(err.Error(), "does not exist") != 1 {
		t.Errorf("checkResultLimits = %v", err)
	}
}

// What this process holds for others is masked, under the name of its variable.
func TestSecretsOfARun(t *testing.T) {
	reg, err := NewRegistry(File{})
	if err != nil {
		t.Fatal(err)
	}
	if reg, err = reg.With(registry.Planned(registry.Definition{Name: "moon", Toolset: "sky", RequiresEnv: []string{"MOON_KEY"}})); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"MY_KEY": "one-one-one", "GATEWAY": "two-two-two", "MOON_KEY": "three-three", "PATH_LIKE": "four-four-four",
		"SPARE_KEY": "five-five-five", "SUMMARY_KEY": "six-six-six-six", "APPROVER_KEY": "seven-seven"} {
		t.Setenv(name, value)
	}
	f := File{Context: rollout.ContextSettings{SummaryAPIKeyEnv: "SUMMARY_KEY"}, Commands: tools.CommandSettings{ApproverAPIKeyEnv: "APPROVER_KEY"},
		Model: model.Settings{APIKeyEnv: "MY_KEY", HeaderEnv: map[string]string{"X-Key": "GATEWAY"}, Fallbacks: []model.Fallback{{Model: "spare", APIKeyEnv: "SPARE_KEY"}}}}
	got := f.Secrets(reg).String()
	for name, want := range map[string]bool{"MY_KEY": true, "GATEWAY": true, "MOON_KEY": true, "PATH_LIKE": false,
		"SPARE_KEY": true, "SUMMARY_KEY": true, "APPROVER_KEY": true} {
		if strings.Contains(got, name) != want {
			t.Errorf("%s: %s is a secret: %v, want %v", got, name, !want, want)
		}
	}
}
