package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/tools/delegate"
)

// family is a model that says to each episode of a tree what stands under its path; "" is the root.
type family struct {
	lines map[string][]func(model.Request) (model.Reply, error)

	mu    sync.Mutex
	asked map[string][]model.Request
}

func (f *family) Complete(_ context.Context, req model.Request) (model.Reply, error) {
	path := episode.PathOf(req.Episode)
	f.mu.Lock()
	if f.asked == nil {
		f.asked = map[string][]model.Request{}
	}
	turn := len(f.asked[path])
	req.Messages = slices.Clone(req.Messages)
	f.asked[path] = append(f.asked[path], req)
	f.mu.Unlock()
	lines := f.lines[path]
	if len(lines) == 0 {
		lines = f.lines["any"]
	}
	reply, err := lines[min(turn, len(lines)-1)](req)
	reply.Message.Calls = slices.Clone(reply.Message.Calls) // each episode owns what it was told
	return reply, err
}

func hand(arguments string) func(model.Request) (model.Reply, error) {
	return call(episode.Call{ID: "d", Name: "delegate_task", Arguments: arguments})
}

func shell(command string) func(model.Request) (model.Reply, error) {
	text, _ := json.Marshal(map[string]string{"command": command})
	return call(episode.Call{ID: "s", Name: "terminal", Arguments: string(text)})
}

// playFamily plays an episode with subagents.
func playFamily(t *testing.T, f *family, settings delegate.Settings, edit ...func(*rollout.Player)) (*episode.Episode, error) {
	t.Helper()
	edit = append(edit, func(p *rollout.Player) { p.Model, p.Delegation = f, settings })
	return playWith(t, nil, episode.Task{Files: episode.Files{"given": episode.File("x")}}, []string{"file", "terminal", "delegation", "todo", "clarify", "memory", "code_execution"}, edit...)
}

// results are what the root was told of a call.
func results(t *testing.T, ep *episode.Episode, at int) (all []delegate.Result) {
	t.Helper()
	var got struct{ Results []delegate.Result }
	if err := json.Unmarshal([]byte(ep.Calls[at].Result), &got); err != nil {
		t.Fatalf("%v in %s", err, ep.Calls[at].Result)
	}
	return got.Results
}

// TestSubagents plays a tree of two generations, at once and one by one: it is the same tree.
func TestSubagents(t *testing.T) {
	tasks := `{"tasks":[{"goal":"lead","role":"orchestrator"},{"goal":"write","context":"a hint","toolsets":["terminal"]}]}`
	play := func(settings delegate.Settings) (*family, *episode.Episode) {
		f := &family{lines: map[string][]func(model.Request) (model.Reply, error){
			"":            {hand(tasks), shell("cat a b given"), say("done")},
			"0-0-0":       {hand(`{"goal":"sub","role":"orchestrator"}`), say("led")},
			"0-0-0-0-0-0": {shell("echo A > a"), say("wrote a")},
			"0-0-1":       {shell("echo B > b"), say("wrote b")},
		}}
		ep, err := playFamily(t, f, settings)
		if err != nil || ep.Outcome != episode.Success {
			t.Fatalf("%v, %s, %+v", err, ep.Outcome, ep.Fault)
		}
		return f, ep
	}
	f, ep := play(delegate.Settings{Depth: 2})
	if got := ep.Calls[1].Result; !strings.Contains(got, `A\nB\nx`) {
		t.Errorf("what subagents wrote into their parent's sandbox: %s", got)
	}
	want := []delegate.Result{
		{Task: 0, Status: "completed", Role: "orchestrator", Summary: "led", APICalls: 2, Model: "m", ExitReason: "answered", Tokens: &delegate.Tokens{Input: 20, Output: 10}, ToolTrace: []delegate.Called{{Tool: "delegate_task", Status: "ok"}}},
		{Task: 1, Status: "completed", Role: "leaf", Summary: "wrote b", APICalls: 2, Model: "m", ExitReason: "answered", Tokens: &delegate.Tokens{Input: 20, Output: 10}, ToolTrace: []delegate.Called{{Tool: "terminal", Status: "ok"}}},
	}
	if diff := cmp.Diff(want, results(t, ep, 0)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	var tree []string
	seeds := map[int]string{}
	for each := range ep.Tree() {
		if each.Origin != nil {
			o := each.Origin
			tree = append(tree, fmt.Sprint(episode.PathOf(each.ID), " of ", episode.PathOf(o.Parent), " depth ", o.Depth, " ", o.Role, " call ", o.Call, " turn ", o.Turn))
		}
		if each.ID != each.Key.ID() || each.Outcome != episode.Success || each.Attempt != ep.Attempt || each.Sandbox.Opened != true {
			t.Errorf("%s: %+v", each.ID, each.Origin)
		}
		for _, req := range f.asked[each.Key.Path] {
			if other, taken := seeds[*req.Seed]; taken {
				t.Errorf("%s and %s have one seed", each.ID, other)
			}
			seeds[*req.Seed] = each.ID
		}
	}
	if diff := cmp.Diff([]string{
		"0-0-0 of  depth 1 orchestrator call d turn 0", "0-0-0-0-0-0 of 0-0-0 depth 2 leaf call d turn 0", "0-0-1 of  depth 1 leaf call d turn 0",
	}, tree); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	// Tools go by tool: no subagent has what it may not have, in whatever toolset that stands.
	names := func(path string) (all []string) {
		for _, tool := range f.asked[path][0].Tools {
			var of struct{ Function struct{ Name string } }
			if err := json.Unmarshal(tool, &of); err != nil {
				t.Fatal(err)
			}
			all = append(all, of.Function.Name)
		}
		return all
	}
	for path, want := range map[string]string{
		"":            "clarify delegate_task execute_code memory patch process read_file search_files terminal todo write_file",
		"0-0-0":       "delegate_task patch process read_file search_files terminal todo write_file",
		"0-0-0-0-0-0": "patch process read_file search_files terminal todo write_file",
		"0-0-1":       "process terminal",
	} {
		if got := strings.Join(names(path), " "); got != want {
			t.Errorf("tools of %q: %s, want %s", path, got, want)
		}
	}
	if told := f.asked["0-0-1"][0].Messages; len(told) != 2 || told[0].Role != "system" || told[1].Content != "write\n\nContext:\na hint" {
		t.Errorf("a subagent was told %+v", told)
	}
	_, parallel := play(delegate.Settings{Depth: 2, Parallel: 4})
	if diff := cmp.Diff(untimed(ep), untimed(parallel)); diff != "" {
		t.Errorf("at once it is another tree:\n%s", diff)
	}
}

// untimed is an episode as text, without times.
func untimed(ep *episode.Episode) string {
	var text strings.Builder
	for each := range ep.Tree() {
		fmt.Fprintln(&text, each.ID, each.Outcome, each.Stop, each.Answer, each.Usage)
		for _, m := range each.Messages {
			fmt.Fprintln(&text, m.Role, m.Content, m.Calls)
		}
	}
	return text.String()
}

// TestSubagentsOfTheirOwn have a sandbox each, with the task's files, and a list of their own.
func TestSubagentsOfTheirOwn(t *testing.T) {
	f := &family{lines: map[string][]func(model.Request) (model.Reply, error){
		"":    {hand(`{"tasks":[{"goal":"a"},{"goal":"b"}]}`), shell("ls"), call(episode.Call{ID: "t", Name: "todo", Arguments: `{}`}), say("done")},
		"any": {shell("ls; touch mine"), call(episode.Call{ID: "t", Name: "todo", Arguments: `{"todos":[{"id":"1","content":"x"}]}`}), say("did")},
	}}
	ep, err := playFamily(t, f, delegate.Settings{Sandbox: delegate.InOwn})
	if err != nil || len(ep.Children) != 2 {
		t.Fatalf("%v, %+v", err, ep.Fault)
	}
	for _, of := range append(ep.Children, &episode.Episode{ID: "root", Calls: ep.Calls[1:]}) {
		if got := of.Calls[0].Result; !strings.Contains(got, `"output":"given"`) && !strings.Contains(got, `"given\n"`) {
			t.Errorf("%s sees %s, want the task's file alone", of.ID, got)
		}
	}
	if got := ep.Calls[2].Result; !strings.Contains(got, `"total":0`) {
		t.Errorf("the root's list has %s", got)
	}
}

// TestSubagentsRefused: what is wrong with a call is said to the model, and no subagent begins.
func TestSubagentsRefused(t *testing.T) {
	for _, tt := range []struct{ arguments, class string }{
		{`{"tasks":[{"goal":"a"},{"goal":"b"},{"goal":"c"}]}`, "too_many_tasks"},
		{`{"goal":"a","background":true}`, "no_background"},
		{`{"goal":"a","tasks":[{"goal":"b"}]}`, "goal_and_tasks"},
		{`{"context":"a"}`, "no_goal"},
		{`{"goal":"a","toolsets":["nonsense"]}`, "unknown_toolset"},
		{`{"goal":"a","toolsets":["clarify","web"]}`, "no_tools"},
	} {
		f := &family{lines: map[string][]func(model.Request) (model.Reply, error){"": {hand(tt.arguments), say("done")}}}
		ep, err := playFamily(t, f, delegate.Settings{MaxChildren: 2})
		if err != nil || ep.Calls[0].ErrorClass != tt.class || len(ep.Children) > 0 || ep.Outcome != episode.Success {
			t.Errorf("%s: class %q, %d children, %v", tt.arguments, ep.Calls[0].ErrorClass, len(ep.Children), err)
		}
	}
	// A leaf has no way to delegate, and an orchestrator too deep down is a leaf, and its parent is told.
	f := &family{lines: map[string][]func(model.Request) (model.Reply, error){
		"": {hand(`{"goal":"a","role":"orchestrator"}`), say("done")}, "0-0-0": {hand(`{"goal":"b"}`), say("cannot")},
	}}
	ep, err := playFamily(t, f, delegate.Settings{})
	if err != nil || len(ep.Children) != 1 || ep.Children[0].Calls[0].Status != episode.CallUnknownTool || results(t, ep, 0)[0].Role != "leaf" {
		t.Errorf("too deep: %v, %+v", err, ep.Calls)
	}
}

// TestSubagentsHaveShares: what a subagent uses is its parent's, and none gets more than its share of the rest.
func TestSubagentsHaveShares(t *testing.T) {
	f := &family{lines: map[string][]func(model.Request) (model.Reply, error){
		"": {hand(`{"tasks":[{"goal":"a"},{"goal":"b"}]}`), say("done")}, "any": {shell("true")},
	}}
	ep, err := playFamily(t, f, delegate.Settings{Turns: 7}, func(p *rollout.Player) { p.Limits.Tokens = 135 })
	if err != nil || ep.Stop != episode.StopMaxTokens || len(ep.Children) != 2 {
		t.Fatalf("%v, %s", err, ep.Stop) // 15 and 2·60 of 135
	}
	for _, child := range ep.Children {
		if child.Stop != episode.StopMaxTokens || len(child.Turns) != 4 || child.Reward != nil {
			t.Errorf("%s: %s after %d turns, want max_tokens after 4 of 15 tokens", child.ID, child.Stop, len(child.Turns))
		}
	}
	f.asked = nil
	ep, err = playFamily(t, f, delegate.Settings{Turns: 7})
	if got := results(t, ep, 0)[0]; err != nil || got.Status != "failed" || got.ExitReason != "max_turns" || got.APICalls != 7 || ep.Outcome != episode.Success {
		t.Errorf("%v, %+v", err, got)
	}
	f.asked, f.lines["any"] = nil, []func(model.Request) (model.Reply, error){shell("sleep 10")}
	ep, err = playFamily(t, f, delegate.Settings{}, func(p *rollout.Player) { p.Limits.Time = 500 * time.Millisecond })
	if err != nil || ep.Stop != episode.StopTimeout || len(ep.Children) != 2 || ep.Children[0].Stop != episode.StopTimeout || len(ep.Children[1].Turns) > 0 {
		t.Errorf("time up: %v, %s, %d children", err, ep.Stop, len(ep.Children))
	}
}

// TestSubagentsFaults: what is not a subagent's doing is not its parent's either.
func TestSubagentsFaults(t *testing.T) {
	lines := map[string][]func(model.Request) (model.Reply, error){
		"":      {hand(`{"tasks":[{"goal":"a"},{"goal":"b"},{"goal":"c"}]}`), say("done")},
		"0-0-1": {fail(&model.Error{Class: model.ClassServer, Message: "it is down"})},
		"any":   {shell("true"), say("fine")},
	}
	ep, err := playFamily(t, &family{lines: lines}, delegate.Settings{})
	if err != nil || ep.Outcome != episode.ModelError || ep.Fault.Class != model.ClassServer || !strings.Contains(ep.Fault.Message, "subagent "+ep.ID+"-0-0-1") {
		t.Fatalf("%v, %s, %+v", err, ep.Outcome, ep.Fault)
	}
	if len(ep.Children) != 2 || ep.Children[0].Outcome != episode.Success || ep.Children[1].Outcome != episode.ModelError {
		t.Errorf("%d children: what was paid for is kept, and the third does not begin", len(ep.Children))
	}
	if spent := ep.Ended(); spent.Turns != 3 || spent.Usage.Prompt != 30 {
		t.Errorf("the attempt keeps %+v, want what its subagents used, too", spent)
	}
	lines["0-0-1"] = []func(model.Request) (model.Reply, error){func(model.Request) (model.Reply, error) { panic("a bug") }}
	for _, parallel := range []int{1, 3} {
		ep, err = playFamily(t, &family{lines: lines}, delegate.Settings{Parallel: parallel})
		if err != nil || ep.Outcome != episode.ToolError || ep.Fault.Class != "panic" {
			t.Errorf("a panic: %v, %s, %+v", err, ep.Outcome, ep.Fault)
		}
	}
}
