package reward_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/native"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// open gives a fresh sandbox of a backend that is on every machine.
func open(t testing.TB) sandbox.Sandbox {
	t.Helper()
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	sb, err := backend.Open(t.Context(), sandbox.Spec{ID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	return sb
}

func subject(t testing.TB, sb sandbox.Sandbox, answer string) reward.Subject {
	return reward.Subject{Answer: answer, Sandbox: func(context.Context) (sandbox.Sandbox, error) {
		if sb == nil {
			t.Error("the sandbox was opened for a check of the answer alone")
		}
		return sb, nil
	}}
}

func TestAnswers(t *testing.T) {
	exact := func(s string) episode.Check { return episode.Check{Exact: episode.Texts{s}} }
	number := func(f float64, tolerance float64) episode.Check {
		return episode.Check{Number: &f, Tolerance: tolerance}
	}
	tests := []struct {
		name   string
		check  episode.Check
		answer string
		want   float64
	}{
		{"exact", exact("42"), " 42\n", 1},
		{"exact, other", exact("42"), "the answer is 42", 0},
		{"exact, empty answer", exact("42"), "", 0},
		{"number, last one counts", number(18, 0), "16 - 3 - 4 = 9, times 2 is $18.", 1},
		{"number, first one does not", number(16, 0), "16 - 3 - 4 = 9, times 2 is $18.", 0},
		{"number, thousands", number(130000, 0), "It is 130,000 dollars", 1},
		{"number, list is not thousands", number(3, 0), "1,2,3", 1},
		{"number, negative", number(-5, 0), "so x = -5", 1},
		{"number, range", number(5, 0), "between 3-5", 1},
		{"number, decimal", number(0.1, 0), "0.1000000000000000055", 1},
		{"number, exponent", number(1e-3, 0), "1e-3", 1},
		{"number, tolerance", number(3.14, 0.01), "3.1415", 1},
		{"number, outside tolerance", number(3.14, 0.001), "3.1415", 0},
		{"number, without a zero", number(0.5, 0), "it is .5", 1},
		{"number, typeset minus", number(-5, 0), "it is −5", 1},
		{"number, typeset thousands", number(1000, 0), "it is 1{,}000", 1},
		{"number, none", number(0, 0), "nothing", 0},
		{"number, beyond float", number(1, 0), "1e999", 0},
		{"regex", episode.Check{Regex: `(?i)\bv2\.3\b`}, "It is V2.3.", 1},
		{"regex, no match", episode.Check{Regex: `^v2$`}, "v2.3", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rewards, mean, err := reward.Verify(t.Context(), []episode.Check{tt.check}, subject(t, nil, tt.answer))
			if err != nil || mean != tt.want || len(rewards) != 1 {
				t.Errorf("Verify = %v, %v, %v, want %v", rewards, mean, err, tt.want)
			}
		})
	}
}

func TestWeights(t *testing.T) {
	yes, no := "yes", "no"
	checks := []episode.Check{{Name: "a", Exact: episode.Texts{yes}, Weight: 3}, {Exact: episode.Texts{no}}}
	rewards, mean, err := reward.Verify(t.Context(), checks, subject(t, nil, "yes"))
	if err != nil || mean != 0.75 {
		t.Fatalf("mean = %v, %v, want 0.75", mean, err)
	}
	if rewards[0].Name != "a" || rewards[0].Weight != 3 || rewards[1].Name != "exact" || rewards[1].Weight != 1 {
		t.Errorf("rewards = %+v", rewards)
	}
}

func TestBrokenSpec(t *testing.T) {
	text := "x"
	for _, check := range []episode.Check{
		{},
		{Command: "true", Exact: episode.Texts{text}},
		{Tests: episode.Files{"a": nil}},
		{Regex: "("},
		{Exact: episode.Texts{text}, Weight: math.Inf(1)},
	} {
		_, _, err := reward.Verify(t.Context(), []episode.Check{check}, subject(t, nil, "x"))
		var broken *reward.Broken
		if !errors.As(err, &broken) {
			t.Errorf("Verify(%+v) = %v, want a *Broken", check, err)
		}
	}
}

func TestCommands(t *testing.T) {
	tests := []struct {
		name  string
		check episode.Check
		want  float64
		class string // of the breakage
	}{
		{name: "status 0", check: episode.Check{Command: "true"}, want: 1},
		{name: "status 1", check: episode.Check{Command: "false"}, want: 0},
		{name: "not found", check: episode.Check{Command: "no-such-program"}, class: "exit_127"},
		{name: "not executable", check: episode.Check{Command: "touch x; ./x"}, class: "exit_126"},
		{name: "signal", check: episode.Check{Command: "kill -9 $$"}, class: "signal_9"},
		{name: "signal in a child", check: episode.Check{Command: "bash -c 'kill -11 $$'; exit $?"}, class: "signal_11"},
		{name: "status 255 is not a signal", check: episode.Check{Command: "exit 255"}, want: 0},
		{name: "timeout", check: episode.Check{Command: "sleep 60", Timeout: 200e6}, class: "timeout"},
		{name: "reward on stdout", check: episode.Check{Command: "echo checking; echo 0.25", Reward: "stdout"}, want: 0.25},
		{name: "no number on stdout", check: episode.Check{Command: "echo good", Reward: "stdout"}, class: "output"},
		{name: "not finite", check: episode.Check{Command: "echo NaN", Reward: "stdout"}, class: "output"},
		{name: "stdout but failed", check: episode.Check{Command: "echo 1; exit 3", Reward: "stdout"}, class: "exit_3"},
		{name: "pytest", check: episode.Check{Command: "echo 'FAILED of the agent'; echo '=== short test summary info ==='; echo 'PASSED a::b'; echo 'SKIPPED [1] x'; exit 1", Reward: "pytest"}, want: 1},
		{name: "pytest, one failed", check: episode.Check{Command: "echo '= short test summary info ='; echo 'PASSED a::b'; echo 'FAILED a::c - no'", Reward: "pytest"}, want: 0},
		{name: "pytest, a summary that the agent printed", check: episode.Check{Command: "for s in PASSED FAILED; do echo '= short test summary info ='; echo $s a::b; done", Reward: "pytest"}, want: 0},
		{name: "pytest did not run", check: episode.Check{Command: "echo PASSED a::b", Reward: "pytest"}, class: "output"},
		{name: "pytest without results", check: episode.Check{Command: "echo '= short test summary info ='", Reward: "pytest"}, class: "output"},
		{name: "swebench", check: episode.Check{Command: "echo log; echo SWEBench results starts here; echo PASSED; echo SWEBench results ends here; exit 1", Reward: "swebench"}, want: 1},
		{name: "swebench, failed", check: episode.Check{Command: "echo SWEBench results starts here; echo FAILED; echo SWEBench results ends here", Reward: "swebench"}, want: 0},
		{name: "swebench, results that the agent printed", check: episode.Check{Command: "for s in PASSED FAILED PASSED; do echo SWEBench results starts here; echo $s; echo SWEBench results ends here; done", Reward: "swebench"}, want: 0},
		{name: "swebench did not run", check: episode.Check{Command: "echo PASSED", Reward: "swebench"}, class: "output"},
		{name: "sweperf", check: episode.Check{Command: "echo SWE-Perf results starts here; echo PASSED; echo SWE-Perf results ends here", Reward: "sweperf"}, want: 1},
		{name: "mlebench", check: episode.Check{Command: "echo MLEBench results starts here; echo ALL TESTS PASSED; echo MLEBench results ends here", Reward: "mlebench"}, want: 1},
		{name: "mlebench, failed", check: episode.Check{Command: "echo MLEBench results starts here; echo PASSED; echo MLEBench results ends here", Reward: "mlebench"}, want: 0},
		{name: "swelancer", check: episode.Check{Command: "echo SWE Lancer Success", Reward: "swelancer"}, want: 1},
		{name: "swelancer, what the agent printed first", check: episode.Check{Command: "echo SWE Lancer success; echo SWE Lancer failure", Reward: "swelancer"}, want: 0},
		{name: "swelancer did not run", check: episode.Check{Command: "echo success", Reward: "swelancer"}, class: "output"},
		{name: "tests in the private directory", check: episode.Check{Tests: episode.Files{"/tests/t.sh": episode.File("test -f work.txt")}, Command: `bash "$TESTS/t.sh"`}, want: 1},
		{name: "programs of its own", check: episode.Check{Tests: episode.Files{"/tests/bin/grep": episode.File("#!/bin/sh\n")}, Command: "grep -q x work.txt"}, want: 1},
		{name: "no shell is needed", check: episode.Check{Command: "find 'work.txt' -size 0"}, want: 1},
		{name: "no shell is needed, status 1", check: episode.Check{Command: "grep -q 'a b' work.txt"}, want: 0},
		{name: "a shell is wanted", check: episode.Check{Env: map[string]string{"BASH_ENV": "t/env"}, Tests: episode.Files{"t/env": episode.File("grep() { true; }")}, Command: "grep -q x work.txt"}, want: 1},
		{name: "tests in the working directory", check: episode.Check{Tests: episode.Files{"t/t.sh": episode.File("test -f work.txt")}, Command: "bash t/t.sh"}, want: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sb := open(t)
			if err := sb.Files().Write(t.Context(), sandbox.FileWrite{Path: "work.txt"}); err != nil {
				t.Fatal(err)
			}
			_, mean, err := reward.Verify(t.Context(), []episode.Check{tt.check}, subject(t, sb, ""))
			var broken *reward.Broken
			if tt.class != "" {
				if !errors.As(err, &broken) || broken.Class != tt.class {
					t.Errorf("Verify = %v, %v, want it broken as %s", mean, err, tt.class)
				}
				return
			}
			if err != nil || mean != tt.want {
				t.Errorf("Verify = %v, %v, want %v", mean, err, tt.want)
			}
		})
	}
}

// TestForgery lets an agent prepare the ground for a verifier of Python code in every way that was thought of.
func TestForgery(t *testing.T) {
	check := episode.Check{
		Tests:   episode.Files{"/tests/check.py": episode.File("import os, sys, json\nsys.path.append(os.getcwd())\nimport answer\nassert answer.VALUE == 42\n")},
		Command: `python3 "$TESTS/check.py"`,
	}
	tests := []struct{ name, agent string }{
		{"nothing", "echo VALUE = 1 > answer.py"},
		{"module beside the verifier", `echo VALUE = 1 > answer.py; mkdir -p "$TESTS_DIR"; echo 'import os; os._exit(0)' > "$TESTS_DIR/json.py"`},
		{"link in place of the directory", `echo VALUE = 1 > answer.py; mkdir planted; echo 'import os; os._exit(0)' > planted/json.py; ln -sfn "$PWD/planted" "$TESTS_DIR"`},
		{"no working directory", `rm -rf "$PWD"`},
		{"a file in place of the working directory", `rm -rf "$PWD"; touch "$PWD"`},
		{"user site", `echo VALUE = 1 > answer.py; d=$(python3 -m site --user-site); mkdir -p "$d"; echo 'import os; os._exit(0)' > "$d/usercustomize.py"`},
		{"process that waits for the file", `echo VALUE = 1 > answer.py; (setsid bash -c 'while sleep 0.01; do echo "import os; os._exit(0)" > "$TESTS_DIR/check.py"; done' >/dev/null 2>&1 &)`},
		{"byte code that is not checked", `echo VALUE = 1 > answer.py; python3 - <<'EOF'
import importlib.util, os, py_compile
open("evil.py", "w").write("VALUE = 42\n")
py_compile.compile("evil.py", importlib.util.cache_from_source("answer.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
EOF`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sb := open(t)
			result, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"bash", "-c", tt.agent}, Env: []string{"TESTS_DIR=" + sb.Layout().Tests}}, sandbox.RunOptions{})
			if err != nil || result.Exit.Code != 0 {
				t.Fatalf("agent: %+v, %v", result, err)
			}
			_, mean, err := reward.Verify(t.Context(), []episode.Check{check}, subject(t, sb, ""))
			if err != nil || mean != 0 {
				t.Errorf("Verify = %v, %v, want 0", mean, err)
			}
		})
	}
}

// TestByteCode plants byte code where it is looked for from outside, and where that would take too long.
func TestByteCode(t *testing.T) {
	for name, agent := range map[string]string{
		"deep":                 "mkdir -p a/b/__pycache__",
		"in many directories":  "mkdir d{1..20} d20/__pycache__",
		"in a large directory": "touch f{1..2000}; mkdir __pycache__",
		"a file of that name":  "touch __pycache__",
		"a link to nowhere":    "mkdir a; ln -s /nowhere a/__pycache__",
	} {
		t.Run(name, func(t *testing.T) {
			sb := open(t)
			if result, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"bash", "-c", agent}}, sandbox.RunOptions{}); err != nil || result.Exit.Code != 0 {
				t.Fatalf("agent: %+v, %v", result, err)
			}
			check := episode.Check{Command: `test -z "$(find . -name __pycache__)"`}
			if _, mean, err := reward.Verify(t.Context(), []episode.Check{check}, subject(t, sb, "")); err != nil || mean != 1 {
				t.Errorf("Verify = %v, %v, want 1", mean, err)
			}
		})
	}
}
