package scripted_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model/scripted"
)

// TestSkill counts the episodes that solve a task of one step, which leaves no room for slips.
func TestSkill(t *testing.T) {
	tk := task("t")
	tk.Gold = tk.Gold[2:]
	for _, skill := range []float64{0, 0.3, 0.85, 1} {
		server := newServer(t, scripted.Config{Policy: scripted.Noisy, Skill: skill, Seed: 1}, tk)
		solved := 0
		n := 1000
		if skill == 0.3 {
			n = 10_000
		}
		for i := range n {
			if begin(t, server, tk, fmt.Sprintf("ep%d", i)).next().String() == "The value is 42." {
				solved++
			}
		}
		if got := float64(solved) / float64(n); got < skill-0.03 || got > skill+0.03 {
			t.Errorf("skill %v: %v of the episodes are solved", skill, got)
		}
	}
}

var allTools = []string{"terminal", "process", "read_file", "write_file", "patch", "search_files", "execute_code", "todo"}

// TestNoisy looks at many episodes: their length, their slips, that the changes of a success are the reference
// solution's and that a failure changes and answers nothing right.
func TestNoisy(t *testing.T) {
	answer := "The value is 42."
	n := 42.0
	judged := task("judged")
	judged.Verify = []episode.Check{{Number: &n}, {Regex: `(?i)everything|done|4\d`}, {Exact: episode.Texts{answer}}}
	long := task("long")
	for range 20 {
		long.Gold = slices.Insert(long.Gold, 0, gold("", "search_files", `{"pattern":"x"}`))
	}
	tests := []struct {
		task  *episode.Task
		tools []string
	}{
		{task("t"), allTools}, {task("t"), []string{"terminal"}}, {task("t"), []string{"execute_code"}}, {judged, allTools}, {long, allTools}, {task("t"), nil},
	}
	for _, tt := range tests {
		server := newServer(t, scripted.Config{Policy: scripted.Noisy, Skill: 0.5, Seed: 3}, tt.task)
		oracle := newServer(t, scripted.Config{Policy: scripted.Oracle}, tt.task)
		want := texts(begin(t, oracle, tt.task, "e", tt.tools...).play(40))
		slips, thoughts, failures, loops := 0, 0, 0, 0
		for i := range 200 {
			id := fmt.Sprint(i)
			got := begin(t, server, tt.task, id, tt.tools...).play(30)
			if i < 20 {
				if diff := cmp.Diff(texts(got), texts(begin(t, server, tt.task, id, tt.tools...).play(30))); diff != "" {
					t.Fatalf("episode %s is another one the second time:\n%s", id, diff)
				}
			}
			last := got[len(got)-1]
			for _, a := range got {
				if a.Reasoning != "" {
					thoughts++
				}
			}
			if last.String() == want[len(want)-1] { // solved
				rest := slices.DeleteFunc(texts(got), func(s string) bool { return !slices.Contains(want, s) })
				if !slices.Equal(rest, want) {
					t.Errorf("success %s = %q, want the steps of %q", id, texts(got), want)
				}
				slips += len(got) - len(want)
				if len(got) > len(want)+2 || len(got) > 25 {
					t.Errorf("success %s has %d turns, the reference solution %d", id, len(got), len(want))
				}
				continue
			}
			failures++
			if len(got) == 30 {
				loops++
			}
			for _, a := range got {
				for _, call := range a.ToolCalls {
					if strings.Contains(call.Function.Arguments, "sed -i") {
						t.Errorf("failure %s changes something: %q", id, texts(got))
					}
				}
			}
			if strings.Contains(last.String(), "42") || strings.Contains(last.String(), "value") && tt.task.ID != "judged" && len(tt.task.Verify) > 0 {
				t.Errorf("failure %s answers %q", id, last)
			}
			if tt.task == judged && len(last.ToolCalls) == 0 {
				for _, word := range []string{"everything", "done", "4"} {
					if strings.Contains(strings.ToLower(last.String()), word) {
						t.Errorf("failure %s answers %q, which a check takes", id, last)
					}
				}
			}
		}
		if failures < 70 || failures > 130 {
			t.Errorf("%s with %v: %d of 200 failed, want about half", tt.task.ID, tt.tools, failures)
		}
		if tt.tools != nil && (slips == 0 || thoughts == 0 || loops == 0) {
			t.Errorf("%s with %v: %d slips, %d thoughts, %d loops, want some of each", tt.task.ID, tt.tools, slips, thoughts, loops)
		}
	}
}

// TestSlipsAreModels shows that slips of every kind occur and that none garbles a call that changes something.
func TestSlipsAreModels(t *testing.T) {
	tk := task("t")
	server := newServer(t, scripted.Config{Policy: scripted.Noisy, Skill: 1, Seed: 3}, tk)
	kinds := map[string]int{}
	for i := range 200 {
		for _, a := range begin(t, server, tk, fmt.Sprint(i), "terminal", "read_file").play(30) {
			for _, call := range a.ToolCalls {
				name, args := call.Function.Name, call.Function.Arguments
				known := name == "terminal" || name == "read_file"
				switch {
				case known && !json.Valid([]byte(args)):
					kinds["malformed"]++
				case !known && strings.ToLower(name) != name:
					kinds["camel case"]++
				case !known:
					kinds["invented"]++
				case strings.Contains(args, `"20"`) || strings.Contains(args, "["):
					kinds["mistyped"]++
				default:
					continue
				}
				if known && strings.Contains(args, "sed") {
					t.Errorf("a change is garbled: %s(%s)", name, args)
				}
			}
		}
	}
	for _, kind := range []string{"malformed", "camel case", "invented", "mistyped"} {
		if kinds[kind] == 0 {
			t.Errorf("no slip is %s: %v", kind, kinds)
		}
	}
}

// TestIdentityWithoutHeader keeps the draws of an episode though its seed changes with each turn.
func TestIdentityWithoutHeader(t *testing.T) {
	tk := task("t")
	server := newServer(t, scripted.Config{Policy: scripted.Noisy, Skill: 0.5}, tk)
	different := map[string]bool{}
	for episodeSeed := range 40 {
		one := begin(t, server, tk, "", allTools...)
		two := begin(t, server, tk, "", allTools...)
		var got [2][]string
		for turn := range 8 {
			one.extra = map[string]any{"seed": episodeSeed * 1000}
			two.extra = map[string]any{"seed": episodeSeed*1000 + turn}
			got[0], got[1] = append(got[0], one.next().String()), append(got[1], two.next().String())
		}
		if diff := cmp.Diff(got[0], got[1]); diff != "" {
			t.Errorf("seed %d: a changing seed changes the episode:\n%s", episodeSeed, diff)
		}
		different[strings.Join(got[0], "\n")] = true
	}
	if len(different) < 10 {
		t.Errorf("40 seeds give only %d different episodes", len(different))
	}
}
