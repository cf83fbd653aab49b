package rollout_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/faults"
)

// TestTwin plays an episode of two calls, and a twin that parts from it at the second one: what the model said up to there is not
// asked again, and the sandbox is as it was.
func TestTwin(t *testing.T) {
	t.Parallel()
	touch := func(name string) episode.Call {
		return episode.Call{ID: name, Name: "terminal", Arguments: `{"command": "touch ` + name + `; ls"}`}
	}
	clock := episode.Call{ID: "clock", Name: "terminal", Arguments: `{"command": "date +%N"}`}
	check := []episode.Check{{Command: "test -e a && test -e b"}}
	clean := twinOf(t, nil, steps(call(touch("a")), call(touch("b")), say("done")), check)
	if clean.Outcome != episode.Success {
		t.Fatal(clean.Outcome)
	}
	asked := steps(say("I stop here"))
	twin := twinOf(t, clean, asked, check)
	if twin.Outcome != episode.Success || twin.Answer != "I stop here" || twin.Twin.Prefix != episode.PrefixReplayed || twin.ID == clean.ID {
		t.Errorf("twin: %s %q, prefix %s", twin.Outcome, twin.Answer, twin.Twin.Prefix)
	}
	if len(asked.asked) != 1 || asked.asked[0].Turn != 2 || len(twin.Turns) != 3 {
		t.Errorf("%d requests, want one, after %d turns", len(asked.asked), len(twin.Turns))
	}
	if twin.Usage.Prompt != 10 || twin.Twin.PrefixTokens != 30 {
		t.Errorf("paid %+v, and %d tokens of the prefix", twin.Usage, twin.Twin.PrefixTokens)
	}
	if twin.RequestSeed(1) != clean.RequestSeed(1) || twin.RequestSeed(2) == clean.RequestSeed(2) {
		t.Error("a twin has seeds of its own exactly after the call where it parts")
	}
	if !slices.EqualFunc(clean.Messages[:5], twin.Messages[:5], func(a, b episode.Message) bool { return a.Content == b.Content }) {
		t.Errorf("messages %v, want those of %v", twin.Messages, clean.Messages)
	}

	// A tool that prints the time gives something else each time.
	clean = twinOf(t, nil, steps(call(clock), call(touch("b")), say("done")), check)
	diverged := twinOf(t, clean, steps(say("no")), check)
	if diverged.Outcome != episode.Cancelled || diverged.Twin.Prefix != episode.PrefixDiverged || diverged.Fault.Class != "twin_diverged" ||
		diverged.Differed == nil || diverged.Differed.Turn != 0 || diverged.Differed.Name != "terminal" || diverged.Reward != nil {
		t.Errorf("diverged twin: %s, prefix %s, fault %v, differed %v", diverged.Outcome, diverged.Twin.Prefix, diverged.Fault, diverged.Differed)
	}
}

// TestTwinEndsEarly holds that a twin which does not get to the call where it parts counts as one that could not follow.
func TestTwinEndsEarly(t *testing.T) {
	t.Parallel()
	touch := call(episode.Call{ID: "a", Name: "terminal", Arguments: `{"command": "touch a"}`})
	clean := twinOf(t, nil, steps(touch, touch, say("done")), nil)
	short := twinOf(t, clean, steps(say("no")), nil, func(p *rollout.Player, _ *episode.Episode) { p.Limits.Turns = 1 })
	if short.Outcome != episode.Cancelled || short.Twin.Prefix != episode.PrefixDiverged || short.Differed == nil || short.Differed.Name != "end" || short.Usage.Prompt != 0 {
		t.Errorf("%s, prefix %s, differed %v, paid %+v", short.Outcome, short.Twin.Prefix, short.Differed, short.Usage)
	}
}

// faulted makes a twin one with a fault at a call.
func faulted(class string, ordinal int, at episode.Place) func(*rollout.Player, *episode.Episode) {
	return func(p *rollout.Player, ep *episode.Episode) {
		*ep.Twin = episode.Twin{Role: episode.TwinFault, Of: ep.Twin.Of, Class: class, P: 1, Turn: at.Turn, Index: at.Index, Nested: at.Nested, Ordinal: ordinal}
		p.Services = func(*episode.Task, *episode.Episode, model.Ask) []any {
			return []any{faults.NewSingle(faults.Settings{}, ep.Key, faults.Single{Place: at, Class: class, P: 1})}
		}
	}
}

// TestTwinCrossed exchanges results of the turn where the two part: the earlier call shows another one, and the two have not diverged.
func TestTwinCrossed(t *testing.T) {
	t.Parallel()
	echo := func(id string) episode.Call {
		return episode.Call{ID: id, Name: "terminal", Arguments: `{"command": "echo of ` + id + `"}`}
	}
	clean := twinOf(t, nil, steps(call(echo("a")), call(echo("b"), echo("c")), say("done")), nil)
	twin := twinOf(t, clean, steps(say("seen")), nil, faulted("crossed", 2, episode.Place{Turn: 1, Index: 1}))
	if twin.Twin.Prefix != episode.PrefixReplayed || twin.Answer != "seen" {
		t.Fatalf("%s, prefix %s, differed %v", twin.Outcome, twin.Twin.Prefix, twin.Differed)
	}
	for i, of := range []int{0, 2, 1} {
		if c := twin.Calls[i]; c.Result != clean.Calls[of].Result || (c.Planted != nil) != (i > 0) || i > 0 && (c.Planted.From != 2 || c.Planted.RealResult != clean.Calls[i].Result) {
			t.Errorf("call %d shows %s, planted %+v", i, c.Result, c.Planted)
		}
	}
}

// TestTwinInScript plants a fault into the second of the calls of a script, which runs anew to that call. A script that does something
// else before it makes no pair.
func TestTwinInScript(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first   string // call of the script
		differs string
	}{
		"the same":       {"terminal(command='echo 1 >> log; cat log')", ""},
		"another result": {"terminal(command='date +%N')", "terminal"},
		"another call":   {"terminal(command='echo %d' % time.time_ns())", "calls"},
		"no call":        {"os.path.exists(been) and exit() or open(been, 'w') and terminal(command='true')", "calls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, _ := json.Marshal(map[string]string{"code": "import os, time\nbeen = '" + filepath.Join(t.TempDir(), "been") + "'\nfrom trajgen_tools import terminal\nprint(" + tt.first +
				")\nprint(terminal(command='echo 2 >> log; cat log'))\nprint(terminal(command='echo 3 >> log; cat log'))"})
			run := call(episode.Call{ID: "s", Name: "execute_code", Arguments: string(script)})
			begin := call(episode.Call{ID: "a", Name: "terminal", Arguments: `{"command": "echo 0 >> log"}`})
			toolsets := func(_ *rollout.Player, ep *episode.Episode) { ep.Toolsets = []string{"terminal", "code_execution"} }
			clean := twinOf(t, nil, steps(begin, run, say("done")), nil, toolsets)
			if len(clean.Calls) < 5 {
				t.Fatalf("%d calls: %+v", len(clean.Calls), clean.Calls)
			}
			twin := twinOf(t, clean, steps(say("seen")), nil, toolsets, faulted("error_permanent", 3, episode.Place{Turn: 1, Nested: 2}))
			if tt.differs != "" {
				if twin.Twin.Prefix != episode.PrefixDiverged || twin.Differed == nil || twin.Differed.Name != tt.differs {
					t.Errorf("prefix %s, differed %+v", twin.Twin.Prefix, twin.Differed)
				}
				return
			}
			if twin.Twin.Prefix != episode.PrefixReplayed || twin.Answer != "seen" {
				t.Fatalf("%s, prefix %s, differed %+v", twin.Outcome, twin.Twin.Prefix, twin.Differed)
			}
			for i, c := range twin.Calls {
				if (c.Planted != nil) != (i == 3) || (c.Result == clean.Calls[i].Result) != (i == 0 || i == 2) {
					t.Errorf("call %d: %s, was %s, planted %+v", i, c.Result, clean.Calls[i].Result, c.Planted)
				}
			}
			if got := twin.Calls[4].Result; !strings.Contains(got, `0\n1\n3`) {
				t.Errorf("behind the fault: %s", got)
			}
		})
	}
}

// twinOf plays a task, or a twin of an episode that parts in its second turn.
func twinOf(t *testing.T, clean *episode.Episode, s *script, check []episode.Check, edit ...func(*rollout.Player, *episode.Episode)) *episode.Episode {
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
	task := episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "do it"}}, Verify: check}
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Toolsets: []string{"terminal"}, Attempt: 1}
	if clean != nil {
		player.Clean = func(*episode.Twin) (*episode.Episode, error) { return clean, nil }
		ep.Twin = &episode.Twin{Role: episode.TwinPlacebo, Of: clean.ID, Class: "none", Turn: 1, Ordinal: 1}
	}
	for _, e := range edit {
		e(player, ep)
	}
	if clean != nil {
		ep.Key.Twin = ep.Twin.Name()
	}
	ep.ID = ep.Key.ID()
	if err := player.Play(t.Context(), &task, ep); err != nil {
		t.Fatal(err)
	}
	return ep
}
