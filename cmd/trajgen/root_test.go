package main

import (
	"strings"
	"testing"
)

// TestWrongUsage is of command lines that cobra itself refuses.
func TestWrongUsage(t *testing.T) {
	for line, want := range map[string]string{
		"rum":                         `unknown command "rum"`,
		"report":                      "which run? give its directory: trajgen report DIR",
		"run tasks.jsonl":             "a dataset with --dataset PATH",
		"report here":                 "here is not a run directory",
		"report here there":           `unknown command "here"`,
		"report here --run there":     `unknown command "here"`,
		"run --datset x":              `unknown flag: --datset (did you mean "--dataset"?)`,
		"run --nothing-like-it x":     "unknown flag: --nothing-like-it (see trajgen run --help)",
		"verify":                      "[run sharegpt]",
		"verify --run x --sharegpt x": "[run sharegpt]",
	} {
		if got := here(t, strings.Fields(line)...); got.code != exitUsage || !strings.Contains(got.errOut, want) {
			t.Errorf("trajgen %s: exit code %d, %s, want %q", line, got.code, got.errOut, want)
		}
	}
}
