package policy_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"trajgen/tools/policy"
)

// commands reads the lines of a file of examples.
func commands(t testing.TB, level policy.Level) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", string(level)+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		if line != "" && (!strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "# rm")) {
			all = append(all, line)
		}
	}
	return all
}

func TestCheck(t *testing.T) {
	for _, level := range []policy.Level{policy.Allow, policy.Ask, policy.Block} {
		for _, command := range commands(t, level) {
			got := policy.Check(command, policy.Context{})
			if got.Verdict != level {
				t.Errorf("Check(%q) = %s (%s), want %s", command, got.Verdict, got.Rule, level)
			}
			if (got.Rule == "") != (level == policy.Allow) || (got.Reason == "") != (level == policy.Allow) {
				t.Errorf("Check(%q) has rule %q and reason %q", command, got.Rule, got.Reason)
			}
		}
	}
}

// TestCheckAtOnce is for the race detector.
func TestCheckAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, command := range []string{"printf '%s' rm | sh", "echo -e 'a\\tb' | sh", "echo a b | while read x y; do $x; done"} {
				policy.Check(command, policy.Context{})
			}
		})
	}
	all.Wait()
}

// TestRules shows that there is an example of every rule.
func TestRules(t *testing.T) {
	hit := map[string]int{}
	for _, level := range []policy.Level{policy.Ask, policy.Block} {
		for _, command := range commands(t, level) {
			hit[policy.Check(command, policy.Context{}).Rule]++
		}
	}
	// What reading alone comes upon in texts that are not a single line.
	for _, command := range []string{"ls " + strings.Repeat("x", policy.MaxCommand), strings.Repeat("(", 1000)} {
		hit[policy.Check(command, policy.Context{}).Rule]++
	}
	verdict, _ := policy.Typed{Command: "bash"}.Add("ls \x12x", nil)
	hit[verdict.Rule]++
	for _, rule := range policy.Rules() {
		if hit[rule.Rule] == 0 {
			t.Errorf("no example of %s", rule.Rule)
		}
		if rule.Verdict != policy.Ask && rule.Verdict != policy.Block || rule.Reason == "" {
			t.Errorf("rule %+v", rule)
		}
	}
}
