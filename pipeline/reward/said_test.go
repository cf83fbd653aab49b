package reward_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
)

// said is a subject that answered "4" after one call.
func said(t *testing.T, answer string) reward.Subject {
	s := subject(t, open(t), answer)
	s.Said = func() ([]episode.Message, []episode.ToolCall) {
		return []episode.Message{{Role: "user", Content: "<2+2>"}, {Role: "assistant", Content: answer}},
			[]episode.ToolCall{{Name: "terminal", Status: episode.CallOK, Result: `{"output": "4"}`}}
	}
	return s
}

// TestSaid has commands read what the agent said and did.
func TestSaid(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]episode.Check{
		"answer":       {Command: `test "$(cat "$ANSWER_FILE")" = 4`},
		"conversation": {Command: `python3 -c 'import json, os; assert json.load(open(os.environ["CONVERSATION_FILE"]))[0]["content"] == "<2+2>"'`},
		"calls":        {Command: `grep -q '"name":"terminal".*"status":"ok".*4' "$CALLS_FILE"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := said(t, "4")
			_, mean, err := reward.Verify(t.Context(), []episode.Check{check}, s)
			if err != nil || mean != 1 {
				t.Errorf("Verify = %v, %v, want 1", mean, err)
			}
			if err := reward.Clear(t.Context(), check, s); err != nil {
				t.Fatal(err)
			}
			sb, _ := s.Sandbox(t.Context())
			if _, err := sb.Files().Stat(t.Context(), path.Join(sb.Layout().Tmp, ".verifier")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("an agent that goes on finds what the verifier had: %v", err)
			}
		})
	}
}

// TestScorers has scorers in Python give numbers, and break.
func TestScorers(t *testing.T) {
	t.Parallel()
	scorer := func(body string) episode.Check {
		return episode.Check{Python: "/tests/it's s.py", Tests: episode.Files{
			"/tests/it's s.py": episode.File("import helper, os\ndef score(answer, conversation, calls):\n    " + body + "\n"), "/tests/helper.py": episode.File("def show(*a):\n    print(*a)\n"),
		}, Timeout: 20 * time.Second}
	}
	tests := []struct {
		name, body string
		want       float64
		class      string
		further    string
	}{
		{name: "a number", body: `helper.show("0.1"); return int(answer) / 8`, want: 0.5},
		{name: "a verdict", body: `return conversation[1]["content"] == answer and calls[0]["name"] == "terminal"`, want: 1},
		{name: "several numbers", body: `return {"reward": 0.25, "style": True}`, want: 0.25, further: "python.style=1"},
		{name: "the agent's files and processes of its own", body: `return os.system("echo 7; exit 0") == 0 and not os.listdir(".")`, want: 1},
		{name: "an exception", body: `return 1 / 0`, class: "exit_1"},
		{name: "nothing", body: `return None`, class: "exit_1"},
		{name: "no number", body: `return float("nan")`, class: "output"},
		{name: "no reward", body: `return {"style": 1}`, class: "output"},
		{name: "an early end", body: `os._exit(0)`, class: "output"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rewards, mean, err := reward.Verify(t.Context(), []episode.Check{scorer(tt.body)}, said(t, "4"))
			var broken *reward.Broken
			if tt.class != "" {
				if !errors.As(err, &broken) || broken.Class != tt.class {
					t.Errorf("Verify = %v, %v, want it broken as %s", mean, err, tt.class)
				}
				return
			}
			if err != nil || mean != tt.want {
				t.Fatalf("Verify = %v, %v, want %v", mean, err, tt.want)
			}
			if tt.further != "" && fmt.Sprintf("%s=%v", rewards[1].Name, rewards[1].Value) != tt.further {
				t.Errorf("further = %+v, want %s", rewards[1:], tt.further)
			}
		})
	}
	if _, _, err := reward.Verify(t.Context(), []episode.Check{scorer("return 1")}, subject(t, open(t), "4")); err == nil || !strings.Contains(err.Error(), "not known here") {
		t.Errorf("without a conversation: %v", err)
	}
}

// TestOfAnswer has checks that cannot judge an agent whose words are not known.
func TestOfAnswer(t *testing.T) {
	for _, tt := range []struct {
		check episode.Check
		want  bool
	}{
		{episode.Check{Exact: episode.Texts{"a"}}, true},
		{episode.Check{JSON: &episode.JSONCheck{}}, true},
		{episode.Check{JSON: &episode.JSONCheck{File: "a.json"}}, false},
		{episode.Check{Likeness: episode.Likeness{Similar: "a"}}, true},
		{episode.Check{Python: "/tests/a.py"}, true},
		{episode.Check{Command: "test -e a"}, false},
		{episode.Check{Command: "cat $ANSWER_FILE"}, true},
		{episode.Check{Command: "/tests/t", Tests: episode.Files{"/tests/t": episode.File("cat ${CALLS_FILE}")}}, true},
	} {
		if got := reward.OfAnswer(tt.check); got != tt.want {
			t.Errorf("OfAnswer(%+v) = %v, want %v", tt.check, got, tt.want)
		}
	}
}

// BenchmarkSaid is a command's check with a conversation of 5 MB.
func BenchmarkSaid(b *testing.B) {
	text := strings.Repeat("a \"line\" of output\n", 25_000)
	for name, n := range map[string]int{"short": 1, "5MB": 10} {
		b.Run(name, func(b *testing.B) {
			s := subject(b, open(b), "4")
			s.Said = func() ([]episode.Message, []episode.ToolCall) {
				if n == 1 {
					return []episode.Message{{Role: "user", Content: "a"}}, nil
				}
				messages := make([]episode.Message, n)
				for i := range messages {
					messages[i] = episode.Message{Role: "tool", Content: text}
				}
				return messages, nil
			}
			for b.Loop() {
				if _, _, err := reward.Verify(b.Context(), []episode.Check{{Command: "true"}}, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
