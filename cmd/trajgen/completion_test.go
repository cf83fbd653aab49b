package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompletion holds what a shell is offered, asked as its script asks.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"runs/one", "runs/two", "elsewhere"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		args []string
		want []string // all of them, and others
		not  string
	}{
		{[]string{"run", "--distribution", "term"}, []string{"terminal_only", "terminal_web", "terminal_tasks"}, "research"},
		{[]string{"run", "--toolsets", "file,te"}, []string{"file,terminal"}, "file"},
		{[]string{"export", "--to", ""}, []string{"parquet", "jsonl", "atif"}, ""},
		{[]string{"export", "--run", ""}, []string{"runs/one", "runs/two", "elsewhere"}, ""},
		{[]string{"report", "runs/t"}, []string{"runs/two"}, "runs/one"},
		{[]string{"diff", "runs/one", ""}, []string{"runs/two"}, ""},
		{[]string{"tools", "schema", "read"}, []string{"read_file"}, "terminal"},
		{[]string{"tools", "call", "br"}, []string{"browser_click"}, ""},
		{[]string{"tools", "call", "x"}, nil, "x_search"}, // which is known by its name alone
		{[]string{"toolsets", "resolve", "fi"}, []string{"file"}, ""},
		{[]string{"distributions", "show", "bal"}, []string{"balanced"}, ""},
		{[]string{"check", "--map", ""}, []string{"gsm8k", "humaneval"}, ""},
		{[]string{"run", "--sandbox", "na"}, []string{"native"}, "docker"},
	}
	for _, tt := range tests {
		got := here(t, append([]string{"__complete"}, tt.args...)...)
		offered := strings.Fields(got.out)
		for _, want := range tt.want {
			if !slices.Contains(offered, want) {
				t.Errorf("%v: %v, want %s among them", tt.args, offered, want)
			}
		}
		if tt.not != "" && slices.Contains(offered, tt.not) {
			t.Errorf("%v: %v, want no %s", tt.args, offered, tt.not)
		}
	}
}

// TestRunHelpInGroups holds that each flag stands in a group, and once.
func TestRunHelpInGroups(t *testing.T) {
	help := here(t, "run", "--help").out
	for _, want := range []string{"\nThis command:\n  -f, --file string", "\nThe dataset, and which of its tasks are played:\n      --dataset list", "\nSandboxes:\n      --sandbox string", "\nPrices and budgets:\n"} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in\n%s", want, help)
		}
	}
	for _, flag := range []string{"--model string ", "--guardrails string ", "--budget-usd number ", "--resume "} {
		if n := strings.Count(help, "      "+flag); n != 1 {
			t.Errorf("%s stands there %d times", flag, n)
		}
	}
}
