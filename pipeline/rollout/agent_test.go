package rollout_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// playWith plays a task with the built-in tools of some toolsets.
func playWith(t *testing.T, s *script, task episode.Task, toolsets []string, edit ...func(*rollout.Player)) (*episode.Episode, error) {
	t.Helper()
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	player := &rollout.Player{Model: s, Registry: reg, Sandboxes: rollout.Sandboxes{Backend: backend}, Now: time.Now}
	for _, e := range edit {
		e(player)
	}
	task.ID = "t"
	if task.Prompt == nil {
		task.Prompt = []episode.Message{{Role: "user", Content: "do it"}}
	}
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Toolsets: toolsets, Attempt: 1}
	ep.ID = ep.Key.ID()
	err = player.Play(t.Context(), &task, ep)
	return ep, err
}

func steps(steps ...func(model.Request) (model.Reply, error)) *script { return &script{steps: steps} }

func ask(question string) func(model.Request) (model.Reply, error) {
	text, _ := json.Marshal(map[string]string{"question": question})
	return call(episode.Call{ID: "ask", Name: "clarify", Arguments: string(text)})
}

func TestMemoryIsShownOnceAndKept(t *testing.T) {
	given := &episode.Memory{Memory: []string{"tests need Postgres", "build with make"}, User: []string{"prefers tabs"}}
	add := call(episode.Call{ID: "m", Name: "memory", Arguments: `{"action":"add","target":"memory","content":"CI is slow"}`})
	s := steps(add, add, say("done"))
	ep, err := playWith(t, s, episode.Task{System: "Be brief.", Memory: given}, []string{"memory"})
	if err != nil {
		t.Fatal(err)
	}
	system := ep.Messages[0].Content
	if !strings.Contains(system, "tests need Postgres\n§\nbuild with make") || !strings.Contains(system, "prefers tabs") {
		t.Errorf("system prompt %q does not show the memory", system)
	}
	if before, found := strings.CutSuffix(system, ep.Recalled); !found || before != "Be brief." || ep.Messages[0].Harness {
		t.Errorf("system prompt %q without %q is %q, want the task's own, not flagged", system, ep.Recalled, before)
	}
	for i, req := range s.asked {
		if req.Messages[0].Content != system {
			t.Errorf("request %d has another system prompt: %q", i, req.Messages[0].Content)
		}
	}
	want := &episode.Memory{Memory: []string{"tests need Postgres", "build with make", "CI is slow"}, User: []string{"prefers tabs"}}
	if diff := cmp.Diff(want, ep.Memory); diff != "" {
		t.Errorf("memory in the end (-want +got):\n%s", diff)
	}
	if len(given.Memory) != 2 || len(ep.Task.Memory.Memory) != 2 {
		t.Errorf("the task's memory became %v", given.Memory)
	}
}

func TestMemoryNeedsItsTool(t *testing.T) {
	given := &episode.Memory{Memory: []string{"x"}}
	ep, err := playWith(t, steps(say("done")), episode.Task{System: "s", Memory: given}, []string{"todo"})
	if err != nil || ep.Memory != nil || ep.Recalled != "" || ep.Messages[0].Content != "s" {
		t.Errorf("without the tool: memory %v, recalled %q, system %q, %v", ep.Memory, ep.Recalled, ep.Messages[0].Content, err)
	}
	ep, err = playWith(t, steps(say("done")), episode.Task{Memory: given}, []string{"memory"})
	if err != nil || !ep.Messages[0].Harness || ep.Messages[0].Content != ep.Recalled {
		t.Errorf("without a system prompt: %+v, %v", ep.Messages[0], err)
	}
	ep, err = playWith(t, steps(say("done")), episode.Task{}, []string{"memory"})
	if err != nil || ep.Messages[0].Role != "user" || ep.Memory == nil {
		t.Errorf("with nothing to remember: %+v, memory %v, %v", ep.Messages[0], ep.Memory, err)
	}
}

func TestScriptedUser(t *testing.T) {
	user := &episode.User{Answers: []episode.UserAnswer{{Match: "(?i)colou?r", Answer: "Blue."}, {Match: "size|color", Answer: "Large."}}}
	ep, err := playWith(t, steps(ask("Which color?"), ask("Which size?"), ask("Why?"), say("done")), episode.Task{User: user}, []string{"clarify"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"user_response":"Blue."`, `"user_response":"Large."`, `"error":"the user does not know`} {
		if got := ep.Calls[i].Result; !strings.Contains(got, want) {
			t.Errorf("answer %d is %s, want %s", i, got, want)
		}
	}
	if ep.Calls[2].ErrorClass != "no_answer" || ep.Outcome != episode.Success {
		t.Errorf("class %s, outcome %s", ep.Calls[2].ErrorClass, ep.Outcome)
	}
	if diff := cmp.Diff(&episode.UserTrace{Questions: 2}, ep.User); diff != "" {
		t.Errorf("user (-want +got):\n%s", diff)
	}
	user.Default = "As you like."
	ep, err = playWith(t, steps(ask("Why?"), say("done")), episode.Task{User: user}, []string{"clarify"})
	if err != nil || !strings.Contains(ep.Calls[0].Result, "As you like.") {
		t.Errorf("default: %v, %v", ep.Calls, err)
	}
	ep, err = playWith(t, steps(ask("Why?"), say("done")), episode.Task{}, []string{"clarify"})
	if err != nil || ep.Calls[0].ErrorClass != "no_user" || ep.User != nil {
		t.Errorf("no user: %v, %v, %v", ep.Calls, ep.User, err)
	}
}

// userModel is a client of a scripted server that knows what a user says to two questions.
func userModel(t *testing.T, cfg scripted.Config, retries int) *model.Client {
	t.Helper()
	cfg.Policy, cfg.Model = "oracle", "person"
	server, err := scripted.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	server.Learn(&episode.Task{ID: "q1", Prompt: []episode.Message{{Role: "user", Content: "Which color?"}, {Role: "user", Content: "Which size?"}},
		Gold: []episode.Step{{Content: "Blue."}, {Content: "Large."}}})
	url, err := server.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err := model.Open(model.Config{Settings: model.Settings{Name: "person", BaseURL: url}, Patience: model.Patience{Retries: retries, Timeout: time.Second}, RetryBase: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestModelUser(t *testing.T) {
	client := userModel(t, scripted.Config{}, 0)
	task := episode.Task{User: &episode.User{Model: true, Persona: "You like the sea."}}
	ep, err := playWith(t, steps(ask("Which color?"), ask("Which size?"), say("done")), task, []string{"clarify"}, func(p *rollout.Player) { p.User = client })
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"user_response":"Blue."`, `"user_response":"Large."`} {
		if got := ep.Calls[i].Result; !strings.Contains(got, want) {
			t.Errorf("answer %d is %s, want %s", i, got, want)
		}
	}
	if ep.User == nil || ep.User.Questions != 2 || ep.User.Model != "person" || !ep.User.Usage.Reported || ep.User.Usage.Completion == 0 {
		t.Errorf("user %+v, want two questions and the tokens of the model", ep.User)
	}
	if ep.Usage.Prompt != 30 || ep.Usage.Completion != 15 {
		t.Errorf("usage %+v, want the agent's three turns alone", ep.Usage)
	}
}

// TestBrokenUserIsNobodysFault holds that an outage of the user's model is never the agent's score.
func TestBrokenUserIsNobodysFault(t *testing.T) {
	task := episode.Task{User: &episode.User{Model: true}, Verify: exact("done")}
	tests := []struct {
		name  string
		user  func(t *testing.T) model.Model
		class string
	}{
		{"errors", func(t *testing.T) model.Model {
			return userModel(t, scripted.Config{FaultRate: 1, Faults: []string{"500"}}, 1)
		}, "user_server"},
		{"silence", func(t *testing.T) model.Model { return userModel(t, scripted.Config{Delay: "1m"}, 0) }, "user_timeout"},
		{"no words", func(*testing.T) model.Model { return steps(say(" ")) }, "user_silent"},
		{"none", func(*testing.T) model.Model { return nil }, "no_user_model"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ep, err := playWith(t, steps(ask("Which color?"), say("done")), task, []string{"clarify"}, func(p *rollout.Player) { p.User = tt.user(t) })
			if err != nil {
				t.Fatal(err)
			}
			if ep.Outcome != episode.ModelError || ep.Reward != nil || ep.Fault == nil || ep.Fault.Class != tt.class {
				t.Errorf("outcome %s, reward %v, fault %+v, want a model_error of class %s", ep.Outcome, ep.Reward, ep.Fault, tt.class)
			}
		})
	}
	_, err := playWith(t, steps(ask("Which color?"), say("done")), task, []string{"clarify"}, func(p *rollout.Player) {
		p.User = steps(fail(&model.Error{Class: model.ClassAuth, Fatal: true}))
	})
	if err == nil {
		t.Error("a user's model that refuses the key stops nothing")
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	var all []func(model.Request) (model.Reply, error)
	for range 31 {
		all = append(all, ask("Why?"))
	}
	ep, err := playWith(t, steps(append(all, say("done"))...), episode.Task{User: &episode.User{Default: "So."}, Limits: episode.Limits{Turns: 40}}, []string{"clarify"})
	if err != nil || ep.User.Questions != 30 || ep.Calls[30].ErrorClass != "too_many_questions" {
		t.Errorf("%+v, last class %q, %v", ep.User, ep.Calls[30].ErrorClass, err)
	}
}
