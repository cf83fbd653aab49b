package tools_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools"
)

// guarded is an episode in a local sandbox under a command policy.
func guarded(t *testing.T, p *tools.CommandPolicy) *episodeOf {
	t.Helper()
	b, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, "local", err)
	t.Cleanup(func() { b.Close() })
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select([]string{"terminal", "code_execution"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	box, err := b.Open(t.Context(), sandbox.Spec{ID: "guarded"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	session := set.Session(registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil }, Hooks: p.Hook(),
	})
	t.Cleanup(session.Close)
	return &episodeOf{t: t, session: session, box: box}
}

// verdictOf is a call's verdict in short.
func verdictOf(call episode.ToolCall) string {
	if call.Verdict == nil {
		return "none"
	}
	return strings.TrimSpace(call.Verdict.Verdict + " " + call.Verdict.Rule + " " + call.Verdict.Decision)
}

func TestCommandPolicyModes(t *testing.T) {
	const remove = "mkdir -p d && rm -r d && echo gone"
	tests := []struct {
		mode    string
		command string
		status  episode.CallStatus
		verdict string
	}{
		{tools.PolicyEnforce, "echo hi", episode.CallOK, "allow"},
		{tools.PolicyEnforce, remove, episode.CallDenied, "ask rm-recursive refused by policy"},
		{tools.PolicyEnforce, "false && reboot", episode.CallDenied, "block power refused by policy"},
		{tools.PolicyRecord, remove, episode.CallOK, "ask rm-recursive recorded"},
		{tools.PolicyRecord, "false && reboot; true", episode.CallOK, "block power recorded"},
		{tools.PolicyOff, remove, episode.CallOK, "none"},
		{tools.PolicyApprove, "echo hi", episode.CallOK, "allow"},
		{tools.PolicyApprove, remove, episode.CallOK, "ask rm-recursive approved by command"},
		{tools.PolicyApprove, "false && reboot", episode.CallDenied, "block power refused by policy"},
	}
	for _, tt := range tests {
		t.Run(tt.mode+" "+tt.command, func(t *testing.T) {
			e := guarded(t, &tools.CommandPolicy{Mode: tt.mode, Approver: tools.CommandApprover{Args: []string{"true"}}})
			call := e.call("terminal", args{"command": tt.command})
			if call.Status != tt.status || verdictOf(call) != tt.verdict {
				t.Errorf("%s is %s, %s; want %s, %s: %s", tt.command, call.Status, verdictOf(call), tt.status, tt.verdict, call.Result)
			}
			if call.Status == episode.CallDenied && (call.ErrorClass != "blocked" || !strings.Contains(call.Result, `"status":"blocked"`) ||
				!strings.Contains(call.Result, call.Verdict.Rule)) {
				t.Errorf("the model gets %s (%s)", call.Result, call.ErrorClass)
			}
		})
	}
}

// TestCommandPolicyState shows that what earlier commands left in the shell is known.
func TestCommandPolicyState(t *testing.T) {
	e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyEnforce})
	steps := []struct {
		command string
		want    string
	}{
		{"export a=rm", "allow"},
		{"$a -rf /", "block rm-system refused by policy"},
		{"tidy() { rm -rf \"$1\"; }", "allow"},
		{"tidy /", "block rm-system refused by policy"},
		{"cd /", "allow"},
		{"rm -f *", "block rm-system refused by policy"},
	}
	for _, step := range steps {
		if call := e.call("terminal", args{"command": step.command}); verdictOf(call) != step.want {
			t.Errorf("%s is %s, want %s: %s", step.command, verdictOf(call), step.want, call.Result)
		}
	}
	if call := e.call("terminal", args{"command": "rm -f *", "workdir": "/etc"}); call.Status != episode.CallDenied {
		t.Errorf("with a workdir: %s", call.Result)
	}
}

func TestCommandPolicyProcess(t *testing.T) {
	e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyEnforce})
	shell := e.call("terminal", args{"command": "bash", "background": true})
	if shell.Status != episode.CallOK {
		t.Fatal(shell.Result)
	}
	e.call("terminal", args{"command": "cat > typed", "background": true})
	steps := []struct {
		give args
		want string
	}{
		{args{"action": "submit", "session_id": "proc_1", "data": "echo hi"}, "allow"},
		{args{"action": "submit", "session_id": "proc_1", "data": "rm -rf /"}, "block rm-system refused by policy"},
		{args{"action": "write", "session_id": "proc_1", "data": "rm -r"}, "ask rm-recursive refused by policy"},
		{args{"action": "submit", "session_id": "proc_1", "data": "ls"}, "allow"}, // what was refused is not in its line
		{args{"action": "write", "session_id": "proc_1", "data": "r"}, "allow"},
		{args{"action": "submit", "session_id": "proc_1", "data": "m -rf /"}, "block rm-system refused by policy"},
		{args{"action": "submit", "session_id": "proc_1", "data": "\x15gone() {"}, "allow"},
		{args{"action": "submit", "session_id": "proc_1", "data": "rm -rf \"$1\"; }; d=/"}, "allow"},
		{args{"action": "submit", "session_id": "proc_1", "data": "gone $d"}, "block rm-system refused by policy"},
		{args{"action": "write", "session_id": "proc_1", "data": "rm -rf /x\x7f\r"}, "block rm-system refused by policy"},
		{args{"action": "submit", "session_id": "proc_2", "data": "rm -rf /"}, "allow"},
		{args{"action": "poll", "session_id": "proc_1"}, "none"},
	}
	for _, step := range steps {
		if call := e.call("process", step.give); verdictOf(call) != step.want {
			t.Errorf("%v is %s, want %s: %s", step.give, verdictOf(call), step.want, call.Result)
		}
	}
}

// TestCommandPolicyProcessState shows that what is typed is judged as what it is for the shell that was started: with its
// home, its directory and the variables that were exported, and not with functions that it does not have.
func TestCommandPolicyProcessState(t *testing.T) {
	e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyEnforce})
	for _, command := range []string{"export target=/ tool=rm", "rm() { echo no; }", "mkdir -p sub; cd sub"} {
		if call := e.call("terminal", args{"command": command}); verdictOf(call) != "allow" {
			t.Fatalf("%s is %s", command, verdictOf(call))
		}
	}
	e.call("terminal", args{"command": "bash", "background": true})
	e.call("terminal", args{"command": "bash", "background": true, "workdir": "/usr"})
	home := e.box.Layout().Home
	for _, step := range []struct{ id, data, want string }{
		{"proc_1", "rm -rf $target", "block rm-system refused by policy"},
		{"proc_1", "$tool -rf $target", "block rm-system refused by policy"},
		{"proc_1", "rm -rf ~", "block rm-system refused by policy"},
		{"proc_1", "rm -rf " + home, "block rm-system refused by policy"},
		{"proc_1", "rm -f *", "allow"},
		{"proc_2", "rm -rf *", "block rm-system refused by policy"},
	} {
		if call := e.call("process", args{"action": "write", "session_id": step.id, "data": step.data}); verdictOf(call) != step.want {
			t.Errorf("%s into %s is %s, want %s", step.data, step.id, verdictOf(call), step.want)
		}
		e.call("process", args{"action": "write", "session_id": step.id, "data": "\x15"})
	}
	code := "import shutil\nshutil.rmtree('" + home + "')"
	if call := e.call("execute_code", args{"code": code}); call.Status != episode.CallDenied {
		t.Errorf("a script that removes the home: %s", verdictOf(call))
	}
}

// TestCommandPolicyNested shows that what a script calls is judged, too.
func TestCommandPolicyNested(t *testing.T) {
	e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyEnforce})
	own := e.call("execute_code", args{"code": "import subprocess\nif False: subprocess.run(['rm', '-rf', '/'])"})
	if verdictOf(own) != "block rm-system refused by policy" {
		t.Errorf("a script with a command that is never run is %s: %s", verdictOf(own), own.Result)
	}
	e.call("execute_code", args{"code": "from trajgen_tools import terminal\nprint(terminal(command='rm -rf /'))"})
	for _, call := range e.session.Trace() {
		if call.Name == "terminal" && call.Status == episode.CallDenied {
			return
		}
	}
	t.Errorf("no nested call was refused: %+v", e.session.Trace())
}

// script is an approver that answers as told, and remembers what it was asked.
type script struct {
	answers []string
	asked   []tools.Question
}

func (s *script) Approve(_ context.Context, q tools.Question) (tools.Answer, error) {
	s.asked = append(s.asked, q)
	if len(s.answers) == 0 {
		return tools.Answer{}, errors.New("the approver is away")
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return tools.Answer{Decision: answer, By: "script"}, nil
}

func TestApprovals(t *testing.T) {
	const remove, same, other = "rm -rf d", "rm   -rf   d", "rm -rf e"
	tests := []struct {
		name    string
		answers []string
		give    []string
		want    []string
		asked   int
	}{
		{"once", []string{"once", "deny"}, []string{remove, same}, []string{"approved by script", "denied by script"}, 2},
		{"for the session", []string{"session", "deny"}, []string{remove, same, other}, []string{"approved by script", "approved by script", "denied by script"}, 2},
		{"denied for the session", []string{"deny"}, []string{remove, same}, []string{"denied by script", "denied by script"}, 1},
		{"always", []string{"always"}, []string{remove, same}, []string{"approved by script", "approved by list"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "allowed.jsonl")
			list, err := tools.OpenAllowList(path)
			if err != nil {
				t.Fatal(err)
			}
			approver := &script{answers: tt.answers}
			e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyApprove, Approver: approver, Allowed: list})
			for i, command := range tt.give {
				if call := e.call("terminal", args{"command": command}); call.Verdict.Decision != tt.want[i] {
					t.Errorf("call %d, %s: %s, want %s", i, command, call.Verdict.Decision, tt.want[i])
				}
			}
			if len(approver.asked) != tt.asked {
				t.Errorf("asked %d times, want %d: %+v", len(approver.asked), tt.asked, approver.asked)
			}
			if tt.name != "always" {
				return
			}
			again, err := tools.OpenAllowList(path)
			if err != nil {
				t.Fatal(err)
			}
			e = guarded(t, &tools.CommandPolicy{Mode: tools.PolicyEnforce, Allowed: again})
			if call := e.call("terminal", args{"command": remove}); call.Status != episode.CallOK || call.Verdict.Decision != "approved by list" {
				t.Errorf("in a later run: %s %+v", call.Result, call.Verdict)
			}
		})
	}
}

// TestBrokenApprover shows that an approver's own trouble is not the agent's doing.
func TestBrokenApprover(t *testing.T) {
	e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyApprove, Approver: &script{}})
	e.call("terminal", args{"command": "rm -rf d"})
	if fault := e.session.Fault(); fault == nil || fault.Outcome != episode.ToolError {
		t.Errorf("the fault is %+v", fault)
	}
}

// TestAllowListRule shows that a rule that is allowed allows nothing else that the command does.
func TestAllowListRule(t *testing.T) {
	path := filepath.Join(t.TempDir(), "allowed.jsonl")
	if err := os.WriteFile(path, []byte(`{"rule":"rm-recursive"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := tools.OpenAllowList(path)
	if err != nil {
		t.Fatal(err)
	}
	e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyEnforce, Allowed: list})
	for command, want := range map[string]string{
		"rm -rf d":                              "ask rm-recursive approved by list",
		"rm -rf d; false && git push --force":   "ask rm-recursive refused by policy",
		"rm -rf d; false && rm -rf /usr":        "block rm-system refused by policy",
		"false && git reset --hard && rm -rf d": "ask git-reset-hard refused by policy",
	} {
		if call := e.call("terminal", args{"command": command}); verdictOf(call) != want {
			t.Errorf("%s is %s, want %s", command, verdictOf(call), want)
		}
	}
}

// TestApprovalElsewhere shows that an answer does not hold for the same words in another directory.
func TestApprovalElsewhere(t *testing.T) {
	approver := &script{answers: []string{"session", "deny"}}
	e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyApprove, Approver: approver})
	for i, step := range []struct{ command, want string }{
		{"rm -rf ./*", "ask rm-recursive approved by script"},
		{"mkdir -p sub && cd sub", "allow"},
		{"rm -rf ./*", "ask rm-recursive denied by script"},
	} {
		if call := e.call("terminal", args{"command": step.command}); verdictOf(call) != step.want {
			t.Errorf("step %d: %s, want %s", i, verdictOf(call), step.want)
		}
	}
}

// TestAllowListFile shows what lies in the file: lines that people can read, one for each command whatever was there.
func TestAllowListFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "allowed.jsonl")
	if err := os.WriteFile(path, []byte("# ours\n"+`{"rule":"git-clean"}`), 0o600); err != nil { // without an end
		t.Fatal(err)
	}
	long := "rm -rf " + strings.Repeat("\\<", 50_000)
	for _, command := range []string{`rm -rf d && echo "<&>"`, long} {
		list, err := tools.OpenAllowList(path)
		if err != nil {
			t.Fatal(err)
		}
		e := guarded(t, &tools.CommandPolicy{Mode: tools.PolicyApprove, Approver: &script{answers: []string{"always"}}, Allowed: list})
		if call := e.call("terminal", args{"command": command}); call.Verdict.Decision != "approved by script" {
			t.Fatalf("%.40s: %s %+v", command, call.Result, call.Verdict)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if want := `{"rule":"rm-recursive","command":"rm -rf d&&echo \"<&>\""}`; len(lines) != 5 || lines[1] != `{"rule":"git-clean"}` || lines[2] != want {
		t.Errorf("the file holds %.300q", text)
	}
	if _, err := tools.OpenAllowList(path); err != nil {
		t.Error(err)
	}
}

func TestAllowListRefuses(t *testing.T) {
	for _, text := range []string{`{"rule":"rm-system"}`, `{"rule":"no-such"}`, `rm -rf x`} {
		path := filepath.Join(t.TempDir(), "allowed.jsonl")
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tools.OpenAllowList(path); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s is taken, error %v", text, err)
		}
	}
}

func TestCommandApprover(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
		err  bool
	}{
		{"exit code 0", []string{"true"}, "once", false},
		{"exit code 1", []string{"false"}, "deny", false},
		{"an answer", []string{"sh", "-c", `grep -q '"rule":"rm-recursive"' && echo '{"decision":"session","reason":"fine"}'`}, "session", false},
		{"another exit code", []string{"sh", "-c", "exit 3"}, "", true},
		{"no such program", []string{"/no/such/program"}, "", true},
		{"no such answer", []string{"echo", `{"decision":"maybe"}`}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tools.CommandApprover{Args: tt.args}.Approve(t.Context(), tools.Question{Command: "rm -r x", Rule: "rm-recursive"})
			if got.Decision != tt.want || (err != nil) != tt.err {
				t.Errorf("got %+v, error %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestPromptApprover(t *testing.T) {
	tests := []struct{ name, give, want string }{
		{"a letter", "o\n", "once"},
		{"a word", "Always\n", "always"},
		{"a slip first", "what?\ns\n", "session"},
		{"nobody", "", "deny"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var shown strings.Builder
			a := &tools.PromptApprover{In: strings.NewReader(tt.give), Out: &shown}
			got, err := a.Approve(t.Context(), tools.Question{Command: "rm -r \x1b[2Jx", Rule: "rm-recursive"})
			if err != nil || got.Decision != tt.want {
				t.Errorf("got %+v, error %v; want %s", got, err, tt.want)
			}
			if strings.Contains(shown.String(), "\x1b") || !strings.Contains(shown.String(), "rm -r") {
				t.Errorf("shown: %q", shown.String())
			}
		})
	}
	t.Run("no answer in time", func(t *testing.T) {
		in, _ := io.Pipe()
		t.Cleanup(func() { in.Close() })
		a := &tools.PromptApprover{In: in, Out: io.Discard, Time: time.Millisecond}
		if got, err := a.Approve(t.Context(), tools.Question{}); err != nil || got.Decision != "deny" {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
}

// What was typed for a question whose time was up does not answer the next one.
func TestPromptApproverForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, keys := io.Pipe()
		defer in.Close()
		a := &tools.PromptApprover{In: in, Out: io.Discard, Time: time.Minute}
		ask := func(keysAt map[time.Duration]string) string {
			t.Helper()
			for after, text := range keysAt {
				go func() {
					time.Sleep(after)
					_, _ = io.WriteString(keys, text)
				}()
			}
			got, err := a.Approve(t.Context(), tools.Question{Command: "rm -r x"})
			if err != nil {
				t.Error(err)
			}
			return got.Decision + " " + got.Reason
		}
		const late = "deny no answer in time"
		for _, tt := range []struct {
			name   string
			before string // what is typed between two questions
			keys   map[time.Duration]string
			want   string
		}{
			{"nobody there", "", nil, late},
			{"typed too late", "a\n", nil, late},
			{"many lines", "a\no\ns\n", nil, late},
			{"a line that began too early", "a", map[time.Duration]string{time.Second: "\n"}, late},
			{"a new line", "x\na\n", map[time.Duration]string{time.Second: "s\n"}, "session "},
			{"two answers at once", "", map[time.Duration]string{time.Second: "o\na\n"}, "once "},
			{"none left of them", "", nil, late},
			{"a long line", "", map[time.Duration]string{time.Second: strings.Repeat("o", 5000) + "\n", 2 * time.Second: "o\n"}, "once "},
		} {
			if tt.before != "" {
				_, _ = io.WriteString(keys, tt.before)
				synctest.Wait()
			}
			if got := ask(tt.keys); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
			synctest.Wait()
		}
	})
}

// says is a model that says one thing.
type says string

func (s says) Complete(context.Context, model.Request) (model.Reply, error) {
	return model.Reply{Message: episode.Message{Role: "assistant", Content: string(s)}}, nil
}

func TestModelApprover(t *testing.T) {
	tests := []struct{ give, want string }{
		{`{"decision":"once","reason":"it is its own"}`, "once"},
		{"Sure:\n```json\n{\"decision\": \"deny\", \"reason\": \"no\"}\n```", "deny"},
		{`{"decision":"always"}`, "once"},
		{`approve`, "deny"},
		{`{"decision":"yes"}`, "deny"},
		{``, "deny"},
	}
	for _, tt := range tests {
		got, err := tools.ModelApprover{Model: says(tt.give)}.Approve(t.Context(), tools.Question{Command: "rm -r x"})
		if err != nil || got.Decision != tt.want || got.By != "model" {
			t.Errorf("of %q: %+v, error %v; want %s", tt.give, got, err, tt.want)
		}
	}
}
