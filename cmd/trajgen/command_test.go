package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandCheck(t *testing.T) {
	tests := []struct {
		give []string
		want string
	}{
		{[]string{"--json", "--", "ls -la"}, `{"verdict":"allow","rule":"","reason":""}` + "\n"},
		{[]string{"--json", "--", "reboot"}, `{"verdict":"block","rule":"power","reason":"turns the machine off or restarts it"}` + "\n"},
		{[]string{"--", "ls"}, "allow\n"},
		{[]string{"--", "git", "reset", "--hard"}, "ask  git-reset-hard: it throws away changes that are not committed\n"},
		{[]string{"--json", "--dir", "/", "--", "rm *"}, `{"verdict":"block","rule":"rm-system","reason":"removes the system, or everything in a home directory"}` + "\n"},
	}
	for _, tt := range tests {
		if got := succeed(t, append([]string{"command", "check"}, tt.give...)...).out; got != tt.want {
			t.Errorf("command check %q prints %q, want %q", tt.give, got, tt.want)
		}
	}
	lines := exec.Command(build(t), "command", "check", "-")
	lines.Stdin = strings.NewReader("ls\n\"rm -rf \\\\\\n /\"\nreboot")
	var verdicts []string
	for line := range strings.Lines(finish(t, lines).out) {
		var verdict struct{ Verdict string }
		if err := json.Unmarshal([]byte(line), &verdict); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		verdicts = append(verdicts, verdict.Verdict)
	}
	if got := strings.Join(verdicts, " "); got != "allow block block" {
		t.Errorf("the verdicts on stdin are %s", got)
	}
	if got := trajgen(t, "command", "check"); got.code != exitUsage {
		t.Errorf("exit code %d without a command line", got.code)
	}
	if got := succeed(t, "command", "rules").out; !strings.Contains(got, "git-reset-hard") || strings.Count(got, "\n") < 60 {
		t.Errorf("the rules are\n%s", got)
	}
}

// TestCommandPolicyCalls shows what is done about commands where there is a machine to lose.
func TestCommandPolicyCalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		flags   []string
		command string
		want    string
	}{
		{"what is blocked", nil, "false && reboot", "denied block refused by policy"},
		{"what the caller agrees to", nil, "mkdir d; rm -r d", "ok ask approved by caller"},
		{"what is harmless", nil, "ls", "ok allow "},
		{"enforced", []string{"--command-policy", "enforce"}, "mkdir d; rm -r d", "denied ask refused by policy"},
		{"recorded", []string{"--command-policy", "record"}, "false && reboot; true", "ok block recorded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			arguments, err := json.Marshal(map[string]string{"command": tt.command})
			if err != nil {
				t.Fatal(err)
			}
			var line resultLine
			out := succeed(t, append([]string{"tools", "call", "terminal", string(arguments), "--sandbox", "local"}, tt.flags...)...).out
			if err := json.Unmarshal([]byte(out), &line); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if line.Verdict == nil {
				t.Fatalf("no verdict: %s", out)
			}
			if got := string(line.Status) + " " + line.Verdict.Verdict + " " + line.Verdict.Decision; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCommandPolicyRun shows the verdicts in the episodes of a run, and what a run file may say.
func TestCommandPolicyRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	dataset := filepath.Join(dir, "tasks.jsonl")
	task := `{"id":"a","prompt":"remove d","files":{"d/x":"1"},"verify":{"command":"test ! -e d"},` +
		`"gold":[{"tool_calls":[{"name":"terminal","arguments":{"command":"rm -r d"}}]},{"content":"done"}]}` + "\n"
	if err := os.WriteFile(dataset, []byte(task), 0o600); err != nil {
		t.Fatal(err)
	}
	allowed := filepath.Join(dir, "allowed.jsonl")
	if err := os.WriteFile(allowed, []byte(`{"rule":"rm-recursive","command":"rm  -r  d"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		flags []string
		want  string // decision
		score bool
	}{
		{"the dataset's own on this machine", nil, "approved by dataset", true},
		{"enforced", []string{"--command-policy", "enforce"}, "refused by policy", false},
		{"recorded", []string{"--command-policy", "record"}, "recorded", true},
		{"off", []string{"--command-policy", "off"}, "none", true},
		{"allowed for good", []string{"--command-policy", "enforce", "--allow-commands", allowed}, "approved by list", true},
		{"approved by a command", []string{"--command-policy", "approve", "--approver", "true"}, "approved by command", true},
		{"denied by a command", []string{"--command-policy", "approve", "--approver", "false"}, "denied by command", false},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := filepath.Join(dir, string(rune('a'+i)))
			succeed(t, append([]string{"run", "--dataset", dataset, "--policy", "oracle", "--sandbox", "local", "--out", out, "--quiet"}, tt.flags...)...)
			ep := episodes(t, out)[0]
			decision := "none"
			if v := ep.Calls[0].Verdict; v != nil {
				decision = v.Decision
			}
			if decision != tt.want || (*ep.Reward == 1) != tt.score {
				t.Errorf("decision %s and reward %v, want %s and a score %v: %s", decision, *ep.Reward, tt.want, tt.score, ep.Calls[0].Result)
			}
		})
	}
	for _, bad := range [][]string{
		{"--command-policy", "maybe"}, {"--command-policy", "approve"}, {"--command-policy", "approve", "--approver", "prompt"},
		{"--approver", "true", "--command-policy", "record"}, {"--approver-model", "x"}, {"--allow-commands", dataset},
	} {
		got := trajgen(t, append([]string{"run", "--dataset", dataset, "--policy", "oracle", "--sandbox", "local", "--out", filepath.Join(dir, "bad")}, bad...)...)
		if got.code != exitUsage {
			t.Errorf("%v: exit code %d: %s", bad, got.code, got.errOut)
		}
	}
}
