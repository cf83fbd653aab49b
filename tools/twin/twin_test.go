package twin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"trajgen/outputs/log/blobs"
	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/twin"
)

// outer is what answers outside of the sandbox: it never says the same twice.
type outer struct {
	said    atomic.Int64
	version string // of who answers
}

func (o *outer) toolset(t testing.TB) *registry.Toolset {
	t.Helper()
	define := func(d registry.Definition, schema string, fn func(env *registry.Env, text string) (any, error)) registry.Tool {
		d.Toolset, d.NoSandbox, d.Description, d.Version = "outer", true, "x", o.version
		tool, err := registry.DefineSchema(d, json.RawMessage(schema), func(_ context.Context, env *registry.Env, arguments json.RawMessage) (any, error) {
			var args struct{ Text string }
			if err := json.Unmarshal(arguments, &args); err != nil {
				return nil, err
			}
			return fn(env, args.Text)
		})
		if err != nil {
			t.Fatal(err)
		}
		return tool
	}
	said := func(_ *registry.Env, text string) (any, error) {
		return map[string]any{"n": o.said.Add(1), "text": text, "html": "<b>&\u2028"}, nil
	}
	const text = `{"type":"object","properties":{"text":{"type":"string","default":"none"},"n":{"type":"number"}}}`
	free := func(json.RawMessage) registry.Access { return registry.Access{} }
	reg, err := registry.New(
		define(registry.Definition{Name: "add", Outside: "tickets"}, text, said),
		define(registry.Definition{Name: "count", Outside: "tickets", ReadOnly: true, Access: free}, text, said),
		define(registry.Definition{Name: "look", Outside: "web", ReadOnly: true, Access: free}, text, func(env *registry.Env, text string) (any, error) {
			env.Source = map[string]any{"mode": "live", "page": text}
			return said(env, text)
		}),
		define(registry.Definition{Name: "fails", Outside: "web"}, text, func(_ *registry.Env, text string) (any, error) {
			switch text {
			case "plain":
				return nil, errors.New("it <broke>")
			case "late":
				return nil, context.DeadlineExceeded
			}
			return nil, &registry.Failure{Class: "not_found", Message: text, Extra: map[string]any{"n": o.said.Add(1), "more": []string{"<a>"}}}
		}),
		define(registry.Definition{Name: "shows", Outside: "web"}, text, func(env *registry.Env, _ string) (any, error) {
			var b bytes.Buffer
			if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, int(o.said.Add(1))+8, 9))); err != nil {
				return nil, err
			}
			if _, err := env.Keep(registry.Image{MIME: "audio/wav", Data: []byte(sound), File: true}); err != nil {
				return nil, err
			}
			return "seen", env.Attach(registry.Image{MIME: "image/png", Data: b.Bytes()})
		}),
		define(registry.Definition{Name: "long", Outside: "web"}, text, func(_ *registry.Env, _ string) (any, error) {
			return strings.Repeat(fmt.Sprintf("%d ", o.said.Add(1)), 40_000), nil
		}),
		define(registry.Definition{Name: "own"}, text, said),
	)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// secrets are masked in results.
var secrets = registry.NewSecrets(map[string]string{"THE_KEY": "hunter2-hunter2"})

// sound is what the tool shows keeps beside its image.
const sound = "RIFF"

// play makes calls of an episode, a list for each turn, and returns its trace. A call is a name and its arguments.
func play(t testing.TB, set *registry.Toolset, on *twin.Twin, id string, turns ...[]string) []episode.ToolCall {
	t.Helper()
	images := media.Open(t.TempDir())
	config := registry.SessionConfig{Secrets: secrets, Sees: true, Images: images, Now: func() time.Time { return time.Time{} }}
	if p := on.Play(id, 1); p != nil {
		config.Services = []any{p}
	}
	session := set.Session(config)
	defer session.Close()
	for turn, calls := range turns {
		var reqs []registry.Request
		for i, call := range calls {
			name, arguments, _ := strings.Cut(call, " ")
			reqs = append(reqs, registry.Request{ID: fmt.Sprintf("c%d-%d", turn, i), Turn: turn, Index: i, Name: name, Arguments: arguments})
		}
		for _, call := range session.CallAll(t.Context(), reqs) {
			if call.Name == "shows" && call.Status == episode.CallOK {
				if data, err := images.Read(blobs.Digest([]byte(sound))); err != nil || string(data) != sound {
					t.Errorf("%s keeps no sound: %v", call.ID, err)
				}
			}
		}
	}
	return session.Trace()
}

// recorder records into a run directory.
func recorder(t testing.TB, run string, resumed bool) *twin.Twin {
	t.Helper()
	on, err := twin.Open(twin.Settings{Mode: twin.Record})
	if err == nil {
		err = on.Record(run, resumed, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// replay opens the recording of a run directory.
func replay(t testing.TB, run string) *twin.Twin {
	t.Helper()
	on, err := twin.Open(twin.Settings{Mode: twin.Replay, Recording: run})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, on) })
	return on
}

func closed(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// record records episodes, each with the calls of one turn.
func record(t testing.TB, run string, calls map[string][][]string) map[string][]episode.ToolCall {
	t.Helper()
	on, all := recorder(t, run, false), map[string][]episode.ToolCall{}
	set := (&outer{}).toolset(t)
	for _, id := range []string{"a", "b", "c"} {
		if turns, ok := calls[id]; ok {
			all[id] = play(t, set, on, id, turns...)
		}
	}
	closed(t, on)
	return all
}

// same holds that calls are equal but for times, and for who answered.
func same(t testing.TB, what string, want, got []episode.ToolCall) {
	t.Helper()
	unsaid := cmp.Transformer("source", func(s json.RawMessage) string {
		return strings.Replace(string(s), `"via":"record"`, `"via":"replay"`, 1)
	})
	times := cmpopts.IgnoreFields(episode.ToolCall{}, "Elapsed", "SandboxTime", "Started")
	if diff := cmp.Diff(want, got, unsaid, times); diff != "" {
		t.Errorf("%s (-recorded +replayed):\n%s", what, diff)
	}
}

var turns = map[string][][]string{
	"a": {
		{`add {"text":"one"}`, `count {}`, `count {}`, `look {"text":"x"}`, `look {"text":"x"}`},
		{`add {"text":"one"}`, `count {}`, `own {}`},
		{`fails {"text":"a <b> & hunter2-hunter2"}`, `fails {"text":"plain"}`, `fails {"text":"late"}`, `shows {}`},
		{`look {"text":"hunter2-hunter2"}`, `long {}`, `look {"txt":1}`, `nothing {}`},
	},
	"b": {{`add {"text":"two"}`, `look {"n":1.50,"text":"x"}`}},
}

// TestReplay replays two episodes 32 times side by side, with a tool that would say something else.
func TestReplay(t *testing.T) {
	run := t.TempDir()
	recorded := record(t, run, turns)
	if source := string(recorded["a"][3].Source); source != `{"via":"record","mode":"live","page":"x"}` {
		t.Errorf("source %s", source)
	}
	on, set := replay(t, run), (&outer{}).toolset(t)
	var all sync.WaitGroup
	for range 32 {
		for _, id := range []string{"a", "b"} {
			all.Go(func() {
				got := play(t, set, on, id, turns[id]...)
				if diff := cmp.Diff(names(recorded[id]), names(got)); diff != "" {
					t.Error(diff)
				}
				for i := range got {
					if got[i].Name == "own" {
						got[i] = recorded[id][i] // nothing stands for it
					}
				}
				same(t, id, recorded[id], got)
			})
		}
	}
	all.Wait()
	err := filepath.WalkDir(run, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("hunter2")) {
				t.Errorf("%s has the secret (%v)", path, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := twin.VerifyRecording(run); err != nil {
		t.Error(err)
	}
}

func names(calls []episode.ToolCall) (all []string) {
	for _, call := range calls {
		all = append(all, call.Name+" "+string(call.Status))
	}
	return all
}

// TestMisses holds which calls are answered, and what is said of the others.
func TestMisses(t *testing.T) {
	run := t.TempDir()
	record(t, run, map[string][][]string{
		"a": {{`add {"text":"one"}`, `add {"text":"two"}`, `count {}`}},
		"b": {{`look {"text":"x"}`}, {`look {"text":"x"}`}},
		"c": {{`add {"text":"three"}`}},
	})
	one, two, count, look := `add {"text":"one"}`, `add {"text":"two"}`, `count {}`, `look {"text":"x"}`
	tests := []struct {
		name, id string
		calls    []string
		version  string
		want     string // of each call: the number that was said, or the kind of miss
	}{
		{"its own", "a", []string{one, two, count}, "", "1 2 3"},
		{"another episode's", "z", []string{one, two, count}, "", "1 2 3"},
		{"in another order", "a", []string{two}, "", "new_history"},
		{"again", "a", []string{one, one}, "", "1 new_history"},
		{"reads, whatever came before", "a", []string{one, count, two, count}, "", "1 3 2 3"},
		{"reads as often as it wants", "b", []string{look, look, look}, "", "4 5 5"},
		{"reads of another episode", "z", []string{look, look}, "", "4 5"},
		{"defaults and spelling", "a", []string{`count {"text":"none"}`, `count { }`}, "", "3 3"},
		{"other arguments", "a", []string{`add {"text":"four"}`, look}, "", "new_arguments 4"},
		{"other numbers", "b", []string{`look {"text":"x","n":1}`}, "", "new_arguments"},
		{"another tool", "a", []string{`shows {}`}, "", "new_tool"},
		{"another version", "a", []string{one}, "2", "other_digest"},
		{"what two families did", "a", []string{`long {}`, one}, "", "new_tool 1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := (&outer{version: tt.version}).toolset(t)
			var each [][]string
			for _, call := range tt.calls {
				each = append(each, []string{call})
			}
			var got []string
			for _, call := range play(t, set, replay(t, run), tt.id, each...) {
				var about twin.About
				if err := json.Unmarshal(call.Source, &about); err != nil || about.Via != twin.Replay {
					t.Fatalf("source %s, %v", call.Source, err)
				}
				var result struct{ N json.Number }
				if missed := about.Miss != ""; missed != (call.ErrorClass == "twin_miss" && call.Status == episode.CallUnavailable) {
					t.Errorf("miss %q, status %s, class %s", about.Miss, call.Status, call.ErrorClass)
				}
				if err := json.Unmarshal([]byte(call.Result), &result); err != nil {
					t.Fatal(err)
				}
				got = append(got, about.Miss+result.N.String())
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("got %s, want %s", text, tt.want)
			}
		})
	}
}

// TestFault holds that a miss is not the agent's doing.
func TestFault(t *testing.T) {
	run := t.TempDir()
	record(t, run, map[string][][]string{"a": {{`add {}`}}})
	for most, want := range map[int]string{0: "tool_error/twin_miss", 1: ""} {
		on, err := twin.Open(twin.Settings{Mode: twin.Replay, Recording: run, MaxMisses: most})
		if err != nil {
			t.Fatal(err)
		}
		session := (&outer{}).toolset(t).Session(registry.SessionConfig{Services: []any{on.Play("a", 1)}})
		session.Call(t.Context(), registry.Request{Name: "count", Arguments: "{}"})
		got := ""
		if f := session.Fault(); f != nil {
			got = string(f.Outcome) + "/" + f.Class
		}
		if got != want {
			t.Errorf("with %d misses: fault %q, want %q", most, got, want)
		}
		session.Close()
		closed(t, on)
	}
}

// TestPatterns holds that tools which no pattern fits answer themselves.
func TestPatterns(t *testing.T) {
	run := t.TempDir()
	record(t, run, map[string][][]string{"a": {{`add {}`, `count {}`}}})
	on, err := twin.Open(twin.Settings{Mode: twin.Replay, Recording: run, Tools: []string{"c*"}})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, on)
	got := play(t, (&outer{}).toolset(t), on, "a", []string{`add {"text":"new"}`, `count {}`})
	if got[0].Source != nil || got[0].Status != episode.CallOK || !strings.Contains(got[1].Result, `"n":2`) {
		t.Errorf("calls %+v", got)
	}
	for _, tt := range []struct {
		give twin.Settings
		want string
	}{
		{twin.Settings{Mode: "tape"}, `unknown mode "tape" (have live, record, replay)`},
		{twin.Settings{Mode: twin.Replay}, "go together"},
		{twin.Settings{Recording: "x"}, "go together"},
		{twin.Settings{Tools: []string{"a"}}, "tools are for"},
		{twin.Settings{Mode: twin.Record, Tools: []string{"[a"}}, "not a pattern"},
		{twin.Settings{Mode: twin.Record, MaxMisses: 1}, "max_misses"},
	} {
		if err := tt.give.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", tt.give, err, tt.want)
		}
	}
	tools := (&outer{}).toolset(t).Tools()
	if err := (twin.Settings{Tools: []string{"l*", "own", "lok"}}).Check(tools); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("Check: %v", err)
	}
}

// TestCoverage holds what a recording is worth for further episodes.
func TestCoverage(t *testing.T) {
	run := t.TempDir()
	record(t, run, map[string][][]string{
		"a": {{`look {"text":"x"}`, `add {"text":"one"}`}}, "b": {{`look {"text":"x"}`, `add {"text":"two"}`}},
	})
	tape, err := twin.OpenTape(twin.RecordingDir(run))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, tape)
	tally, err := tape.Others()
	want := []twin.Coverage{
		{Tool: "add", Calls: 2, Misses: map[string]int{"new_arguments": 2}}, {Tool: "look", Calls: 2, Hits: 2, HitShare: 1, Misses: map[string]int{}},
	}
	if diff := cmp.Diff(want, tally.List()); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	info, err := tape.Info()
	if err != nil || info.Calls != 4 || info.Episodes != 2 || info.Tools["look"] != 2 {
		t.Errorf("info %+v, %v", info, err)
	}
}
