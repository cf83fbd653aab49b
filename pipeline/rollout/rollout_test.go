package rollout_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/native"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// script is a model that says what it is told, one step for each request, and keeps what it was asked.
type script struct {
	steps []func(req model.Request) (model.Reply, error)
	asked []model.Request
}

func (s *script) Complete(ctx context.Context, req model.Request) (model.Reply, error) {
	n := len(s.asked)
	req.Messages = slices.Clone(req.Messages)
	s.asked = append(s.asked, req)
	if n >= len(s.steps) {
		n = len(s.steps) - 1
	}
	return s.steps[n](req)
}

func say(text string) func(model.Request) (model.Reply, error) {
	return func(model.Request) (model.Reply, error) {
		return model.Reply{Message: episode.Message{Role: "assistant", Content: text}, FinishReason: "stop", Model: "m",
			Usage: episode.Usage{Prompt: 10, Completion: 5, Reported: true}}, nil
	}
}

func call(calls ...episode.Call) func(model.Request) (model.Reply, error) {
	return func(model.Request) (model.Reply, error) {
		return model.Reply{Message: episode.Message{Role: "assistant", Reasoning: "hm", Calls: calls}, FinishReason: "tool_calls", Model: "m",
			Usage: episode.Usage{Prompt: 10, Completion: 5, Reported: true}}, nil
	}
}

func fail(err error) func(model.Request) (model.Reply, error) {
	return func(model.Request) (model.Reply, error) { return model.Reply{}, err }
}

// hang is a model that gives nothing until its time is up, after tries that failed.
func hang(retries ...episode.Fault) func(model.Request) (model.Reply, error) {
	return func(model.Request) (model.Reply, error) {
		time.Sleep(60 * time.Millisecond)
		return model.Reply{}, &model.Error{Class: model.ClassCancelled, Tries: model.Tries{Retries: retries}}
	}
}

type pathArgs struct {
	Path string `json:"path" doc:"file to write"`
}

// table makes a registry with a tool that touches the sandbox and some that end badly.
func table(t *testing.T) *registry.Registry {
	t.Helper()
	reg, err := registry.New(
		registry.Define(registry.Definition{Name: "touch", Toolset: "file", Description: "Makes a file."},
			func(ctx context.Context, env *registry.Env, args pathArgs) (any, error) {
				sb, err := env.Sandbox(ctx)
				if err != nil {
					return nil, err
				}
				return map[string]string{"made": args.Path}, sb.Files().Write(ctx, sandbox.FileWrite{Path: args.Path})
			}),
		registry.Define(registry.Definition{Name: "crash", Toolset: "file", Description: "Panics."},
			func(context.Context, *registry.Env, struct{}) (any, error) { panic("bug") }),
		registry.Define(registry.Definition{Name: "lose", Toolset: "file", Description: "Loses the sandbox."},
			func(context.Context, *registry.Env, struct{}) (any, error) {
				return nil, fmt.Errorf("write: %w", sandbox.ErrGone)
			}),
		registry.Define(registry.Definition{Name: "wait", Toolset: "file", Description: "Waits for the end."},
			func(ctx context.Context, _ *registry.Env, _ struct{}) (any, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func play(t *testing.T, s *script, task episode.Task, edit ...func(*rollout.Player)) (*episode.Episode, error) {
	t.Helper()
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	player := &rollout.Player{Model: s, Registry: table(t), Sandboxes: rollout.Sandboxes{Backend: backend}, Now: time.Now}
	for _, e := range edit {
		e(player)
	}
	task.ID = "t"
	if task.Prompt == nil {
		task.Prompt = []episode.Message{{Role: "user", Content: "do it"}}
	}
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Toolsets: []string{"file"}, Attempt: 1}
	ep.ID = ep.Key.ID()
	return ep, player.Play(t.Context(), &task, ep)
}

func exact(text string) []episode.Check { return []episode.Check{{Exact: episode.Texts{text}}} }

func TestOutcomes(t *testing.T) {
	touch := episode.Call{ID: "c", Name: "touch", Arguments: `{"path":"a"}`}
	command := func(text string) []episode.Check { return []episode.Check{{Command: text}} }
	tests := []struct {
		name    string
		steps   []func(model.Request) (model.Reply, error)
		task    episode.Task
		outcome episode.Outcome
		stop    episode.Stop
		reward  any // float64, or nil for none
		class   string
	}{
		{"answered and right", []func(model.Request) (model.Reply, error){say("x")}, episode.Task{Verify: exact("x")}, episode.Success, episode.StopAnswered, 1.0, ""},
		{"answered and wrong", []func(model.Request) (model.Reply, error){say("y")}, episode.Task{Verify: exact("x")}, episode.Failure, episode.StopAnswered, 0.0, ""},
		{"answered, nobody judges", []func(model.Request) (model.Reply, error){say("y")}, episode.Task{}, episode.Success, episode.StopAnswered, nil, ""},
		{"work is judged", []func(model.Request) (model.Reply, error){call(touch), say("done")}, episode.Task{Verify: command("test -f a")}, episode.Success, episode.StopAnswered, 1.0, ""},
		{"turn limit, work judged", []func(model.Request) (model.Reply, error){call(touch)}, episode.Task{Limits: episode.Limits{Turns: 3}, Verify: command("test ! -f a")}, episode.Limit, episode.StopMaxTurns, 0.0, ""},
		{"answer on the last turn", []func(model.Request) (model.Reply, error){call(touch), say("x")}, episode.Task{Limits: episode.Limits{Turns: 2}, Verify: exact("x")}, episode.Success, episode.StopAnswered, 1.0, ""},
		{"token limit", []func(model.Request) (model.Reply, error){call(touch)}, episode.Task{Limits: episode.Limits{Tokens: 40}, Verify: exact("x")}, episode.Limit, episode.StopMaxTokens, 0.0, ""},
		{"time limit in a tool", []func(model.Request) (model.Reply, error){call(episode.Call{ID: "c", Name: "wait", Arguments: "{}"})}, episode.Task{Limits: episode.Limits{Time: 50 * time.Millisecond}, Verify: exact("x")}, episode.Limit, episode.StopTimeout, 0.0, ""},
		{"reply cut", []func(model.Request) (model.Reply, error){func(req model.Request) (model.Reply, error) {
			reply, err := say("half an ans")(req)
			reply.FinishReason = "length"
			return reply, err
		}}, episode.Task{Verify: exact("x")}, episode.Limit, episode.StopLength, 0.0, ""},
		{"window full", []func(model.Request) (model.Reply, error){call(touch), fail(&model.Error{Class: "context_overflow"})}, episode.Task{Verify: exact("x")}, episode.Limit, episode.StopContext, 0.0, ""},
		{"window too small for the task", []func(model.Request) (model.Reply, error){fail(&model.Error{Class: "context_overflow"})}, episode.Task{Verify: exact("x")}, episode.ModelError, episode.StopFault, nil, "context_overflow"},
		{"an account's limit", []func(model.Request) (model.Reply, error){call(touch), fail(&model.Error{Class: "request_too_large"})}, episode.Task{Verify: exact("x")}, episode.ModelError, episode.StopFault, nil, "request_too_large"},
		{"outage until the time is up", []func(model.Request) (model.Reply, error){hang(episode.Fault{Class: "overloaded"})}, episode.Task{Limits: episode.Limits{Time: 50 * time.Millisecond}, Verify: exact("x")}, episode.ModelError, episode.StopFault, nil, "overloaded"},
		{"silence until the time is up", []func(model.Request) (model.Reply, error){hang()}, episode.Task{Limits: episode.Limits{Time: 50 * time.Millisecond}, Verify: exact("x")}, episode.ModelError, episode.StopFault, nil, "timeout"},
		{"setup is on nobody's clock", []func(model.Request) (model.Reply, error){call(touch), say("x")}, episode.Task{Setup: "sleep 2.1", Limits: episode.Limits{Time: 2 * time.Second}, Verify: []episode.Check{{Command: "test -f a", Timeout: 2 * time.Second}}}, episode.Success, episode.StopAnswered, 1.0, ""},
		{"setup before the verifier is on nobody's clock", []func(model.Request) (model.Reply, error){say("x")}, episode.Task{Setup: "sleep 2.1", Verify: []episode.Check{{Command: "true", Timeout: 2 * time.Second}}}, episode.Success, episode.StopAnswered, 1.0, ""},
		{"half the questions answered", []func(model.Request) (model.Reply, error){say("x"), call(touch)}, episode.Task{Prompt: []episode.Message{{Role: "user", Content: "1"}, {Role: "user", Content: "2"}}, Limits: episode.Limits{Turns: 3}, Verify: exact("x")}, episode.Limit, episode.StopMaxTurns, 0.0, ""},
		{"model down", []func(model.Request) (model.Reply, error){fail(&model.Error{Class: "connection", Message: "refused"})}, episode.Task{Verify: exact("x")}, episode.ModelError, episode.StopFault, nil, "connection"},
		{"tool's bug", []func(model.Request) (model.Reply, error){call(episode.Call{ID: "c", Name: "crash", Arguments: "{}"}), say("x")}, episode.Task{Verify: exact("x")}, episode.ToolError, episode.StopFault, nil, "panic"},
		{"sandbox lost", []func(model.Request) (model.Reply, error){call(episode.Call{ID: "c", Name: "lose", Arguments: "{}"}), say("x")}, episode.Task{Verify: exact("x")}, episode.SandboxError, episode.StopFault, nil, ""},
		{"setup fails", []func(model.Request) (model.Reply, error){call(touch), say("x")}, episode.Task{Setup: "echo no such repository >&2; exit 3", Verify: exact("x")}, episode.SandboxError, episode.StopFault, nil, "setup"},
		{"setup fails before the verifier", []func(model.Request) (model.Reply, error){say("x")}, episode.Task{Setup: "exit 3", Verify: command("true")}, episode.SandboxError, episode.StopFault, nil, "setup"},
		{"verifier breaks", []func(model.Request) (model.Reply, error){say("x")}, episode.Task{Verify: command("no-such-program")}, episode.VerifierError, episode.StopFault, nil, "exit_127"},
		{"unknown tool is the model's to mend", []func(model.Request) (model.Reply, error){call(episode.Call{ID: "c", Name: "tuch", Arguments: "{}"}), say("x")}, episode.Task{Verify: exact("x")}, episode.Success, episode.StopAnswered, 1.0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep, err := play(t, &script{steps: tt.steps}, tt.task)
			if err != nil {
				t.Fatal(err)
			}
			if ep.Outcome != tt.outcome || ep.Stop != tt.stop {
				t.Errorf("ended in %s, %s, want %s, %s", ep.Outcome, ep.Stop, tt.outcome, tt.stop)
			}
			if tt.reward == nil && ep.Reward != nil || tt.reward != nil && (ep.Reward == nil || *ep.Reward != tt.reward) {
				t.Errorf("reward %v, want %v", ep.Reward, tt.reward)
			}
			if ep.Outcome.AgentsDoing() != (ep.Fault == nil) || tt.class != "" && ep.Fault.Class != tt.class {
				t.Errorf("fault %+v, want class %q", ep.Fault, tt.class)
			}
			if t.Failed() {
				t.Logf("%+v", ep)
			}
		})
	}
}

// TestWhatTheModelSaw holds that the row has every message in order, and that each call has its result.
func TestWhatTheModelSaw(t *testing.T) {
	s := &script{steps: []func(model.Request) (model.Reply, error){
		call(episode.Call{ID: "1", Name: "touch", Arguments: `{"path":"a"}`}, episode.Call{ID: "2", Name: "touch", Arguments: `{"path":`}),
		say("first"), say("second"),
	}}
	task := episode.Task{System: "be brief", Prompt: []episode.Message{{Role: "user", Content: "one"}, {Role: "user", Content: "two"}}}
	ep, err := play(t, s, task, func(p *rollout.Player) { p.Prompts.System = "unused" })
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, m := range ep.Messages {
		roles = append(roles, m.Role)
	}
	want := "system user assistant tool tool assistant user assistant"
	if got := strings.Join(roles, " "); got != want {
		t.Fatalf("messages: %s, want %s", got, want)
	}
	if ep.Messages[2].Reasoning != "hm" || ep.Messages[2].Calls[1].Arguments != `{"path":` || ep.Messages[2].Calls[1].ID == "" {
		t.Errorf("assistant message %+v", ep.Messages[2])
	}
	for i, m := range ep.Messages[3:5] {
		if !json.Valid([]byte(m.Content)) || m.ToolCallID != ep.Messages[2].Calls[i].ID || m.Content != ep.Calls[i].Result {
			t.Errorf("result %d: %+v", i, m)
		}
	}
	if ep.Calls[1].Status != episode.CallInvalidArguments || ep.Calls[0].Status != episode.CallOK {
		t.Errorf("statuses: %s, %s", ep.Calls[0].Status, ep.Calls[1].Status)
	}
	for i, turn := range ep.Turns {
		if ep.Messages[turn.Message].Role != "assistant" || turn.Index != i {
			t.Errorf("turn %d: %+v", i, turn)
		}
	}
	if len(s.asked) != 3 || len(s.asked[1].Messages) != 5 || len(s.asked[0].Tools) != len(ep.Tools) || *s.asked[0].Seed == *s.asked[1].Seed {
		t.Errorf("requests: %d", len(s.asked))
	}
	if ep.Usage != (episode.Usage{Prompt: 30, Completion: 15, Reported: true}) || ep.Answer != "second" {
		t.Errorf("usage %+v, answer %q", ep.Usage, ep.Answer)
	}
}

// TestNoTools holds that an episode whose draw gave no tool that exists is nobody's failure.
// TestCutCallDoesNotRun refuses a call that the reply ended within, although its arguments could be completed, and keeps
// what was wrong with the reply.
func TestCutCallDoesNotRun(t *testing.T) {
	cut := func(req model.Request) (model.Reply, error) {
		reply, err := call(episode.Call{ID: "1", Name: "touch", Arguments: `{"path":"a"`, Cut: true})(req)
		reply.Repairs = []string{"truncated call: touch"}
		return reply, err
	}
	ep, err := play(t, &script{steps: []func(model.Request) (model.Reply, error){cut, say("done")}}, episode.Task{})
	if err != nil {
		t.Fatal(err)
	}
	if len(ep.Calls) != 1 || ep.Calls[0].Status != episode.CallInvalidArguments || !slices.Equal(ep.Turns[0].Repairs, []string{"truncated call: touch", "arguments sent as an object: touch"}) {
		t.Errorf("calls = %+v, turns = %+v", ep.Calls, ep.Turns)
	}
}

// TestArgumentsThatAreNoObject: the row has what the model wrote and what later requests had in its place: what ran, or
// the text in an object.
func TestArgumentsThatAreNoObject(t *testing.T) {
	arguments := []struct{ wrote, sent string }{
		{`{"path":"a"}`, ""},
		{`{path: 'b'}`, `{"path":"b"}`},
		{`"{\"path\":\"c\"}"`, `{"path":"c"}`},
		{`{"path": "d`, `{"invalid_arguments":"{\"path\": \"d"}`},
		{"null", "{}"}, // which ran
		{"[]", `{"invalid_arguments":"[]"}`},
		{"", "{}"},
	}
	var calls []episode.Call
	var repairs []string
	for i, a := range arguments {
		calls = append(calls, episode.Call{ID: fmt.Sprint("c", i), Name: "touch", Arguments: a.wrote})
		if a.sent != "" {
			repairs = append(repairs, "arguments sent as an object: touch")
		}
	}
	s := &script{steps: []func(model.Request) (model.Reply, error){call(calls...), say("done")}}
	ep, err := play(t, s, episode.Task{})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range arguments {
		for name, m := range map[string]episode.Message{"the row": ep.Messages[1], "the request": s.asked[1].Messages[1], "Sent": ep.Sent(1)[1]} {
			if got := m.Calls[i]; got.Arguments != a.wrote || got.Sent != a.sent {
				t.Errorf("%s has %q sent as %q, want %q and %q", name, got.Arguments, got.Sent, a.wrote, a.sent)
			}
		}
		if ep.Calls[i].RawArguments != a.wrote {
			t.Errorf("trace has %q, want %q", ep.Calls[i].RawArguments, a.wrote)
		}
	}
	if diff := cmp.Diff(repairs, ep.Turns[0].Repairs); diff != "" {
		t.Errorf("repairs (-want +got):\n%s", diff)
	}
}

// TestEmptyAnswer: an episode whose model says nothing is judged, and without a verifier never a success.
func TestEmptyAnswer(t *testing.T) {
	touch := call(episode.Call{ID: "1", Name: "touch", Arguments: `{"path":"a"}`})
	for _, tt := range []struct {
		name    string
		verify  []episode.Check
		outcome episode.Outcome
		reward  any
	}{
		{"not judged", nil, episode.Limit, nil},
		{"judged", exact("x"), episode.Limit, 0.0},
		{"judged by what it did", []episode.Check{{Command: "test -f a"}}, episode.Success, 1.0},
	} {
		for _, text := range []string{"", " \n"} {
			ep, err := play(t, &script{steps: []func(model.Request) (model.Reply, error){touch, say(text)}}, episode.Task{Verify: tt.verify})
			if err != nil {
				t.Fatal(err)
			}
			if ep.Outcome != tt.outcome || ep.Stop != episode.StopEmpty || (ep.Reward == nil) != (tt.reward == nil) || ep.Reward != nil && *ep.Reward != tt.reward {
				t.Errorf("%s, %q: outcome %s, stop %s, reward %v, want %s, %s, %v", tt.name, text, ep.Outcome, ep.Stop, ep.Reward, tt.outcome, episode.StopEmpty, tt.reward)
			}
		}
	}
}

func TestNoTools(t *testing.T) {
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Toolsets: []string{"vision"}, Attempt: 1}
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	player := &rollout.Player{Model: &script{steps: []func(model.Request) (model.Reply, error){say("x")}}, Registry: table(t), Sandboxes: rollout.Sandboxes{Backend: backend}, Now: time.Now}
	if err := player.Play(t.Context(), &episode.Task{Prompt: []episode.Message{{Role: "user"}}, Verify: exact("x")}, ep); err != nil {
		t.Fatal(err)
	}
	if ep.Outcome != episode.ToolError || ep.Fault.Class != "no_tools" || ep.Reward != nil {
		t.Errorf("%s, %+v, reward %v", ep.Outcome, ep.Fault, ep.Reward)
	}
}

// TestPanicClosesTheSandbox holds that a bug of ours leaves no sandbox behind.
func TestPanicClosesTheSandbox(t *testing.T) {
	dir := t.TempDir()
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	s := &script{steps: []func(model.Request) (model.Reply, error){
		call(episode.Call{ID: "c", Name: "touch", Arguments: `{"path":"a"}`}),
		func(model.Request) (model.Reply, error) { panic("bug") },
	}}
	player := &rollout.Player{Model: s, Registry: table(t), Sandboxes: rollout.Sandboxes{Backend: backend}, Now: time.Now}
	ep := &episode.Episode{ID: "e", Key: episode.Key{Task: "t"}, Toolsets: []string{"file"}, Attempt: 1}
	func() {
		defer func() { _ = recover() }()
		_ = player.Play(t.Context(), &episode.Task{Prompt: []episode.Message{{Role: "user"}}}, ep)
	}()
	if live, err := sandbox.List(dir); err != nil || len(live) != 0 {
		t.Errorf("%d sandboxes are left, %v", len(live), err)
	}
	if !ep.Sandbox.Opened || len(ep.Calls) != 1 {
		t.Errorf("opened %v, %d calls", ep.Sandbox.Opened, len(ep.Calls))
	}
}

// TestLazySandbox holds that an episode that touches no sandbox opens none.
func TestLazySandbox(t *testing.T) {
	ep, err := play(t, &script{steps: []func(model.Request) (model.Reply, error){say("x")}}, episode.Task{Setup: "exit 1", Verify: exact("x")})
	if err != nil || ep.Sandbox.Opened || ep.Outcome != episode.Success {
		t.Errorf("%s, opened %v, %v", ep.Outcome, ep.Sandbox.Opened, err)
	}
}

func TestFatalEndsNoEpisode(t *testing.T) {
	fatal := &model.Error{Class: "auth", Fatal: true, Message: "wrong key"}
	_, err := play(t, &script{steps: []func(model.Request) (model.Reply, error){fail(fatal)}}, episode.Task{})
	if !errors.Is(err, error(fatal)) {
		t.Errorf("err = %v, want %v", err, fatal)
	}
}

func TestSecretsStayOutOfTheRow(t *testing.T) {
	task := episode.Task{
		Files:  episode.Files{"a": episode.File("content")},
		Gold:   []episode.Step{{Content: "solution"}},
		Verify: []episode.Check{{Tests: episode.Files{"/tests/t": episode.File("hidden")}, Command: "true"}},
	}
	ep, err := play(t, &script{steps: []func(model.Request) (model.Reply, error){say("x")}}, task)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(ep)
	for _, text := range []string{"hidden", "solution", "content\":\"content"} {
		if strings.Contains(string(data), text) {
			t.Errorf("the row holds %q", text)
		}
	}
}
