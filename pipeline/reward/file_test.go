package reward_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
)

// openRooted gives fresh sandboxes that have a root of their own.
func openRooted(t *testing.T) func(t *testing.T) sandbox.Sandbox {
	t.Helper()
	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	return func(t *testing.T) sandbox.Sandbox {
		sb, err := backend.Open(t.Context(), sandbox.Spec{ID: "test", Limits: sandbox.Limits{Disk: 4 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sb.Close() })
		return sb
	}
}

func TestRewardFile(t *testing.T) {
	tests := []struct {
		name   string
		agent  string // what it runs before it is judged
		verify string // test.sh
		want   float64
		more   map[string]float64
		class  string // of the breakage
	}{
		{name: "text", verify: "echo 0.5 > /logs/verifier/reward.txt", want: 0.5},
		{name: "status says nothing", verify: "echo 1 > /logs/verifier/reward.txt; exit 1", want: 1},
		{name: "number in JSON", verify: "echo 0.25 > /logs/verifier/reward.json", want: 0.25},
		{name: "object", verify: `echo '{"reward": 1, "speed": 12.5}' > /logs/verifier/reward.json`, want: 1, more: map[string]float64{"speed": 12.5}},
		{name: "both agree", verify: `cd /logs/verifier; echo '{"reward": 1, "n": 2}' > reward.json; echo 1.0 > reward.txt`, want: 1, more: map[string]float64{"n": 2}},
		{name: "both differ", verify: `cd /logs/verifier; echo 1 > reward.json; echo 0 > reward.txt`, class: "output"},
		{name: "nothing", verify: "true", class: "output"},
		{name: "empty", verify: "touch /logs/verifier/reward.txt", class: "output"},
		{name: "words", verify: "echo good > /logs/verifier/reward.txt", class: "output"},
		{name: "not finite", verify: "echo inf > /logs/verifier/reward.txt", class: "output"},
		{name: "not finite in JSON", verify: "echo 1e999 > /logs/verifier/reward.json", class: "output"},
		{name: "no verdict among numbers", verify: `echo '{"speed": 1}' > /logs/verifier/reward.json`, class: "output"},
		{name: "null", verify: "echo null > /logs/verifier/reward.json", class: "output"},
		{name: "a list", verify: "echo '[1]' > /logs/verifier/reward.json", class: "output"},
		{name: "two values", verify: "echo '1 0' > /logs/verifier/reward.json", class: "output"},
		{name: "endless", verify: "yes 1 | head -c 100000 > /logs/verifier/reward.txt", class: "output"},
		{name: "a directory", verify: "mkdir /logs/verifier/reward.txt", class: "output"},
		{name: "a pipe", verify: "mkfifo /logs/verifier/reward.txt", class: "output"},
		{name: "variables", verify: `echo "$SCORE" > /logs/verifier/reward.txt`, want: 0.75},
		{name: "too late", verify: "echo 1 > /logs/verifier/reward.txt; sleep 60", class: "timeout"},
		{name: "planted", agent: "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json", verify: "true", class: "output"},
		{name: "planted as a link", agent: "mkdir /tmp/mine; echo 1 > /tmp/mine/reward.txt; ln -s /tmp/mine /logs/verifier", verify: "true", class: "output"},
		{name: "a file in its place", agent: "echo > /logs/verifier", verify: "echo 0 > /logs/verifier/reward.txt", want: 0},
		{name: "a full disk", agent: "cat /dev/zero > /tmp/full 2>/dev/null || true", verify: "echo 0 > /logs/verifier/reward.txt", want: 0},
		{name: "kept from writing", agent: "mkdir -p /logs/verifier; chmod 0 /logs/verifier", verify: "echo 0 > /logs/verifier/reward.txt", want: 0},
		{
			name:   "a process that was left behind",
			agent:  "(setsid bash -c 'while sleep 0.002; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json; done' >/dev/null 2>&1 &)",
			verify: "echo 0 > /logs/verifier/reward.txt; sleep 0.02", want: 0,
		},
		{
			name:   "a process of the verifier's that goes on",
			verify: "echo 0 > /logs/verifier/reward.txt; (setsid bash -c 'sleep 30; echo 1 > /logs/verifier/reward.txt' >/dev/null 2>&1 &)", want: 0,
		},
	}
	fresh := openRooted(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sb := fresh(t)
			if tt.agent != "" {
				result, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"bash", "-c", tt.agent}}, sandbox.RunOptions{})
				if err != nil || result.Exit.Code != 0 {
					t.Fatalf("agent: %+v, %v", result, err)
				}
			}
			timeout := 30 * time.Second
			if tt.class == "timeout" {
				timeout = 300 * time.Millisecond
			}
			check := episode.Check{
				Name: "h", Command: "/tests/test.sh", Reward: "file", Timeout: timeout, Env: map[string]string{"SCORE": "0.75"},
				Tests: episode.Files{"/tests/test.sh": episode.File("#!/bin/bash\n" + tt.verify + "\n")},
			}
			rewards, mean, err := reward.Verify(t.Context(), []episode.Check{check}, subject(t, sb, ""))
			if tt.class != "" {
				var broken *reward.Broken
				if !errors.As(err, &broken) || broken.Class != tt.class {
					t.Errorf("Verify = %v, %v, %v, want it broken as %s", rewards, mean, err, tt.class)
				}
				return
			}
			if err != nil || mean != tt.want {
				t.Fatalf("Verify = %v, %v, %v, want %v", rewards, mean, err, tt.want)
			}
			var more map[string]float64
			for _, r := range rewards[1:] {
				if r.Weight != 0 {
					t.Errorf("%s has the weight %v, want 0", r.Name, r.Weight)
				}
				if more == nil {
					more = map[string]float64{}
				}
				more[r.Name[len("h."):]] = r.Value
			}
			if diff := cmp.Diff(tt.more, more); diff != "" {
				t.Errorf("beside the reward (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTooLarge holds that files of a verifier's that no episode has room for are not a zero of the agent's.
func TestTooLarge(t *testing.T) {
	half := make([]byte, 33<<20)
	check := episode.Check{Command: "true", Tests: episode.Files{"/tests/a": half, "/tests/b": half}}
	_, mean, err := reward.Verify(t.Context(), []episode.Check{check}, subject(t, openRooted(t)(t), ""))
	var broken *reward.Broken
	if !errors.As(err, &broken) || broken.Class != "files" {
		t.Errorf("Verify = %v, %v, want it broken as files", mean, err)
	}
}

// TestKinds holds that each kind of check that runs a command is told from the others. The tests of datasets have examples of
// those that look at the answer.
func TestKinds(t *testing.T) {
	text := "x"
	examples := map[string]episode.Check{
		"command":     {Command: "true"},
		"tests":       {Command: "true", Tests: episode.Files{"/tests/a": nil}},
		"reward_file": {Command: "true", Tests: episode.Files{"/tests/a": nil}, Reward: "file"},
	}
	for _, kind := range reward.Kinds() {
		if _, key := reward.Keys()[kind]; key && kind != "command" {
			continue
		}
		example, ok := examples[kind]
		if got, err := reward.Kind(example); !ok || err != nil || got != kind {
			t.Errorf("Kind of an example of %s = %q, %v", kind, got, err)
		}
	}
	for _, check := range []episode.Check{{Reward: "file"}, {Reward: "file", Exact: episode.Texts{text}}} {
		if kind, err := reward.Kind(check); err == nil {
			t.Errorf("Kind(%+v) = %q, want an error: there is no command", check, kind)
		}
	}
}
