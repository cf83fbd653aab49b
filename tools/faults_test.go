package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools/faults"
)

// faulty is an episode whose first call has a fault.
func faulty(t *testing.T, e *episodeOf, class string) *episodeOf {
	return faultyAt(t, e, class, episode.Place{}, new(time.Duration))
}

func faultyAt(t *testing.T, e *episodeOf, class string, at episode.Place, charged *time.Duration) *episodeOf {
	return faultyWith(t, e, faults.Settings{Seed: 1}, class, at, charged)
}

func faultyWith(t *testing.T, e *episodeOf, settings faults.Settings, class string, at episode.Place, charged *time.Duration) *episodeOf {
	t.Helper()
	name, variant, _ := strings.Cut(class, ":")
	planter := faults.NewSingle(settings, episode.Key{Task: "t"}, faults.Single{Place: at, Class: name, Variant: variant, P: 0.5}, "the prompt names 4711")
	session := e.session.Toolset().Session(registry.SessionConfig{
		Sandbox:  func(context.Context) (sandbox.Sandbox, error) { return e.box, nil },
		Services: []any{planter}, Charge: func(d time.Duration) { *charged += d },
	})
	t.Cleanup(session.Close)
	return &episodeOf{t: t, session: session, box: e.box}
}

// TestFaults plants each class into a call of a built-in tool, in real sandboxes.
func TestFaults(t *testing.T) {
	text := strings.Repeat("line 12345 of 2026-01-15, ok\n", 20)
	read := args{"path": "text"}
	for _, tt := range []struct {
		class, tool string
		args        args
		effect      episode.Effect
		status      episode.CallStatus
		check       func(t *testing.T, e *episodeOf, c *episode.ToolCall)
	}{
		{class: "timeout", tool: "write_file", args: args{"path": "new", "content": "x"}, effect: "none", status: "timeout", check: lacks("new")},
		{class: "timeout:done", tool: "write_file", args: args{"path": "new", "content": "x"}, effect: "done", status: "timeout", check: has("new", "x")},
		{class: "slow", tool: "read_file", args: read, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if c.Result != c.Planted.RealResult {
				t.Errorf("another result than the tool's: %s", c.Result)
			}
		}},
		{class: "error_transient", tool: "write_file", args: args{"path": "new", "content": "x"}, effect: "none", status: "error", check: lacks("new")},
		{class: "error_permanent", tool: "terminal", args: args{"command": "touch new"}, effect: "none", status: "ok", check: lacks("new")},
		{class: "tool_missing", tool: "read_file", args: read, effect: "none", status: "unknown_tool"},
		{class: "schema_drift", tool: "read_file", args: read, effect: "none", status: "invalid_arguments"},
		{class: "schema_drift:result", tool: "read_file", args: read, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if got := decode(t, c.Result); got["content"] != nil || got["body"] == nil {
				t.Errorf("result %s", c.Result)
			}
		}},
		{class: "empty", tool: "read_file", args: read, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if got := decode(t, c.Result); got["content"] != "" || got["total_lines"] != 0.0 {
				t.Errorf("result %s", c.Result)
			}
		}},
		{class: "empty", tool: "search_files", args: args{"pattern": "line"}, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if !strings.Contains(c.Result, `"matches":[]`) {
				t.Errorf("result %s", c.Result)
			}
		}},
		{class: "truncated", tool: "terminal", args: args{"command": "cat text"}, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if got := decode(t, c.Result)["output"].(string); got != text[:len(got)] || len(got) > len(text)*2/5 || len(got) == 0 {
				t.Errorf("%d of %d bytes", len(got), len(text))
			}
		}},
		{class: "truncated:marked", tool: "terminal", args: args{"command": "cat text"}, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if want := registry.Cut(c.Planted.RealResult, len(c.Planted.RealResult)*2/5); c.Result != want {
				t.Errorf("result %s, want %s", c.Result, want)
			}
		}},
		{class: "malformed", tool: "terminal", args: args{"command": `printf '{"list": [1001, 2002, 3003, 4004]}'`}, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if got := decode(t, c.Result)["output"].(string); json.Valid([]byte(got)) || !strings.HasPrefix(`{"list": [1001, 2002, 3003, 4004]}`, got) {
				t.Errorf("output %s", got)
			}
		}},
		{class: "wrong_type", tool: "read_file", args: read, effect: "done", status: "ok", check: changedTarget},
		{class: "wrong_value", tool: "terminal", args: args{"command": "cat text"}, effect: "done", status: "ok", check: func(t *testing.T, e *episodeOf, c *episode.ToolCall) {
			changedTarget(t, e, c)
			if p := c.Planted.Target; len(p.True) != len(p.Wrong) || p.Pointer != "/output" || !strings.Contains(text, p.True) || strings.Contains(text, p.Wrong) {
				t.Errorf("target %+v", p)
			}
		}},
		{class: "huge", tool: "terminal", args: args{"command": "cat text"}, effect: "done", status: "ok", check: func(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
			if got := decode(t, c.Result)["output"].(string); len(got) < 50*len(text) || !strings.HasPrefix(got, text) {
				t.Errorf("%d bytes of %d", len(got), len(text))
			}
		}},
		{class: "garbled", tool: "read_file", args: read, effect: "done", status: "ok"},
		{class: "partial_write", tool: "write_file", args: args{"path": "new", "content": "0123456789"}, effect: "part", status: "ok", check: has("new", "01234")},
		{class: "partial_write", tool: "patch", args: args{"path": "old", "old_string": "was", "new_string": "is"}, effect: "part", status: "ok", check: has("old", "this ")},
		{class: "duplicated", tool: "terminal", args: args{"command": "echo x >> new"}, effect: "twice", status: "ok", check: has("new", "x\nx\n")},
		{class: "error_transient", tool: "terminal", args: args{"command": "sleep 5", "background": true}, effect: "none", status: "ok"},
		{class: "error_transient", tool: "process", args: args{"action": "list"}, effect: "none", status: "error"},
		{class: "error_transient", tool: "execute_code", args: args{"code": "print(1)"}, effect: "none", status: "error"},
	} {
		t.Run(tt.class+" "+tt.tool, func(t *testing.T) {
			t.Parallel()
			e := open(t, "native", "terminal", "file", "code_execution")
			e.write("text", text)
			e.write("old", "this was it")
			before := string(mustJSON(t, e.session.Toolset().Schemas()))
			f := faulty(t, e, tt.class)
			c := f.call(tt.tool, tt.args)
			if c.Planted == nil {
				t.Fatalf("no fault in %s %s", c.Status, c.Result)
			}
			name, variant, _ := strings.Cut(tt.class, ":")
			if p := c.Planted; c.Status != tt.status || p.Effect != tt.effect || p.Class != name || p.Variant != variant || p.P != 0.5 {
				t.Errorf("status %s, planted %+v", c.Status, p)
			}
			if ran := c.Planted.RealStatus != ""; ran != (tt.effect != "none") || !json.Valid([]byte(c.Result)) {
				t.Errorf("the tool ran: %t; result %s", ran, c.Result)
			}
			if tt.effect == "done" && tt.class != "slow" && c.Result == c.Planted.RealResult {
				t.Error("the result is the tool's own")
			}
			if f.session.Fault() != nil {
				t.Errorf("fault of the episode: %v", f.session.Fault())
			}
			if strings.Contains(strings.ToLower(c.Result), "planted") || strings.Contains(c.Result, "fault") {
				t.Errorf("the model sees the plan: %s", c.Result)
			}
			if tt.check != nil {
				tt.check(t, f, &c)
			}
			if after := string(mustJSON(t, f.session.Toolset().Schemas())); after != before {
				t.Error("the tools that are shown have changed")
			}
		})
	}
}

func changedTarget(t *testing.T, _ *episodeOf, c *episode.ToolCall) {
	t.Helper()
	if p := c.Planted.Target; p == nil || p.True == p.Wrong || !strings.Contains(c.Planted.RealResult, p.True) || !strings.Contains(c.Result, p.Wrong) {
		t.Errorf("target %+v in %s", p, c.Result)
	}
}

func lacks(path string) func(*testing.T, *episodeOf, *episode.ToolCall) {
	return func(t *testing.T, e *episodeOf, _ *episode.ToolCall) {
		t.Helper()
		if _, err := e.box.Files().Stat(t.Context(), path); err == nil {
			t.Errorf("%s is there", path)
		}
	}
}

func has(path, want string) func(*testing.T, *episodeOf, *episode.ToolCall) {
	return func(t *testing.T, e *episodeOf, _ *episode.ToolCall) {
		t.Helper()
		if got, _, err := e.box.Files().Read(t.Context(), path, 0, 1000); err != nil || string(got) != want {
			t.Errorf("%s has %q (%v), want %q", path, got, err, want)
		}
	}
}

// TestFaultsLast holds which later calls a fault strikes.
func TestFaultsLast(t *testing.T) {
	t.Parallel()
	type step struct {
		tool    string
		args    args
		planted string // effect; "" without a fault
	}
	a, b := args{"path": "a"}, args{"path": "b"}
	for class, steps := range map[string][]step{
		"error_transient": {{"read_file", a, "none"}, {"read_file", a, ""}},
		"error_permanent": {{"read_file", a, "none"}, {"read_file", b, ""}, {"read_file", a, "none"}},
		"tool_missing":    {{"read_file", a, "none"}, {"read_file", b, "none"}, {"write_file", args{"path": "c", "content": "c"}, ""}},
		"slow":            {{"read_file", a, "done"}, {"read_file", b, "done"}, {"terminal", args{"command": "true"}, ""}, {"read_file", a, "done"}, {"read_file", b, ""}},
		"schema_drift":    {{"read_file", a, "none"}, {"read_file", args{"target": "a"}, "done"}, {"read_file", b, ""}, {"read_file", args{"target": "b"}, "done"}},
	} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			e := open(t, "native", "terminal", "file")
			e.write("a", "of a")
			e.write("b", "of b")
			charged := time.Duration(0)
			f := faultyAt(t, e, class, episode.Place{}, &charged)
			for i, s := range steps {
				c := f.session.Call(t.Context(), registry.Request{ID: "c", Turn: i, Name: s.tool, Arguments: string(mustJSON(t, s.args))})
				got := ""
				if c.Planted != nil {
					got = string(c.Planted.Effect)
				}
				if got != s.planted || s.planted != "none" && c.Status != "ok" {
					t.Errorf("step %d: %s, effect %q, want %q: %s", i, c.Status, got, s.planted, c.Result)
				}
			}
			if want := map[string]time.Duration{"slow": 3 * time.Minute}[class]; charged != want {
				t.Errorf("%s on the clock, want %s", charged, want)
			}
		})
	}
}

// TestFaultInScript plants a fault into the second call of a script.
func TestFaultInScript(t *testing.T) {
	t.Parallel()
	e := open(t, "native", "terminal", "file", "code_execution")
	e.write("a", "of a")
	f := faultyAt(t, e, "error_transient", episode.Place{Nested: 2}, new(time.Duration))
	c := f.call("execute_code", args{"code": "from trajgen_tools import read_file\nfor i in range(3):\n    print(read_file(path='a'))"})
	if c.Planted != nil || c.Status != "ok" {
		t.Errorf("the script's own call: %s %+v", c.Result, c.Planted)
	}
	var planted []bool
	trace := f.session.Trace()
	for _, each := range trace {
		planted = append(planted, each.Planted != nil)
	}
	if diff := cmp.Diff([]bool{false, false, true, false}, planted); diff != "" {
		t.Error(diff)
	}
	ep := episode.Episode{Calls: trace}
	if diff := cmp.Diff([]episode.Place{{}, {Nested: 1}, {Nested: 2}, {Nested: 3}}, ep.Places()); diff != "" {
		t.Error(diff)
	}
}

// TestFaultWords makes calls that fail by themselves, and compares what the model sees with a planted fault byte for byte.
func TestFaultWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, class, tool string
		args              args
	}{
		{"late command", "timeout", "terminal", args{"command": "sleep 60", "timeout": 1}},
		{"no process", "error_transient", "terminal", args{"command": "ulimit -u 0; ls -l | cat"}},
		{"read-only", "error_permanent", "write_file", args{"path": "/usr/new", "content": "x"}},
		{"unreadable", "error_permanent", "read_file", args{"path": "/proc/slabinfo"}},
		{"unsearchable", "error_permanent", "search_files", args{"path": "/proc/slabinfo", "pattern": "x"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := open(t, "native", "terminal", "file")
			planted := faulty(t, e, tt.class).call(tt.tool, tt.args)
			real := e.call(tt.tool, tt.args)
			if real.Status != planted.Status || real.ErrorClass != planted.ErrorClass || real.Result != planted.Result {
				t.Errorf("real    %s %s %s\nplanted %s %s %s", real.Status, real.ErrorClass, real.Result, planted.Status, planted.ErrorClass, planted.Result)
			}
		})
	}
}

// TestFaultStale gives what the same call gave before the agent changed the file.
func TestFaultStale(t *testing.T) {
	t.Parallel()
	e := open(t, "native", "file")
	e.write("a", "of old")
	f := faultyAt(t, e, "stale", episode.Place{Turn: 1}, new(time.Duration))
	look := registry.Request{ID: "c", Name: "read_file", Arguments: `{"path":"a"}`}
	before := f.session.Call(t.Context(), look)
	e.write("a", "of new")
	look.Turn = 1
	late := f.session.Call(t.Context(), look)
	if late.Planted == nil || late.Result != before.Result || !strings.Contains(late.Planted.RealResult, "of new") {
		t.Errorf("%s, planted %+v, want %s", late.Result, late.Planted, before.Result)
	}
	look.Turn = 2
	if now := f.session.Call(t.Context(), look); now.Planted != nil || now.Result != late.Planted.RealResult {
		t.Errorf("%s, planted %+v", now.Result, now.Planted)
	}
}

// TestFaultsOfStrangers plants what only tools have that others answer.
func TestFaultsOfStrangers(t *testing.T) {
	t.Parallel()
	page := registry.Define(registry.Definition{
		Name: "page", Toolset: "pages", Description: "A page.", NoSandbox: true, Outside: "web", Untrusted: "web", ReadOnly: true,
	}, func(context.Context, *registry.Env, struct{}) (any, error) {
		return map[string]string{"text": "what a page says"}, nil
	})
	r, err := registry.New(page)
	if err != nil {
		t.Fatal(err)
	}
	toolset, err := r.Select([]string{"pages"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[string]struct {
		status episode.CallStatus
		text   string
		first  int // call that has none again
	}{
		"canary_text": {"ok", "what a page says", 1}, "rate_limited": {"unavailable", "429", 2}, "auth_expired": {"unavailable", "401", 4},
		"tool_missing": {"ok", "what a page says", 0}, "partial_write": {"ok", "what a page says", 0}, "duplicated": {"ok", "what a page says", 0},
	} {
		planter := faults.NewSingle(faults.Settings{}, episode.Key{Task: "t"}, faults.Single{Class: class, P: 1})
		session := toolset.Session(registry.SessionConfig{Services: []any{planter}})
		for i := range 4 {
			c := session.Call(t.Context(), registry.Request{ID: "c", Turn: i, Name: "page", Arguments: "{}"})
			if planted := c.Planted != nil; planted != (i < want.first) {
				t.Errorf("%s: call %d: planted %+v", class, i, c.Planted)
			} else if planted && (c.Status != want.status || !strings.Contains(c.Result, want.text)) {
				t.Errorf("%s: %s %s", class, c.Status, c.Result)
			} else if planted && class == "canary_text" && !strings.HasSuffix(c.Result, c.Planted.Target.Token+`."}`) {
				t.Errorf("%s: %s has no %+v", class, c.Result, c.Planted.Target)
			}
		}
		if session.Fault() != nil {
			t.Errorf("%s: fault of the episode: %v", class, session.Fault())
		}
		session.Close()
	}
}

// TestFaultCrossed exchanges the results of two reads of a turn, also where a third one shares the first one's result.
// TestFaultMitigated has the harness repeat calls that fail by a fault, if they only read.
func TestFaultMitigated(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		class, tool string
		retry       int
		status      episode.CallStatus
		retries     int
		charged     time.Duration
	}{
		"it passes":            {"error_transient", "read_file", 2, "ok", 1, 0},
		"late":                 {"timeout", "read_file", 1, "ok", 1, 10 * time.Second},
		"late, but done":       {"timeout:done", "read_file", 1, "ok", 1, 10 * time.Second},
		"it stays":             {"error_permanent", "read_file", 2, "error", 2, 0},
		"silent":               {"wrong_value", "read_file", 2, "ok", 0, 0},
		"it writes":            {"error_transient", "write_file", 2, "error", 0, 0},
		"it may do anything":   {"timeout", "terminal", 2, "timeout", 0, 10 * time.Second},
		"without a mitigation": {"error_transient", "read_file", 0, "error", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, "native", "file", "terminal")
			e.write("text", "17 pears and 2026-01-15")
			var charged time.Duration
			settings := faults.Settings{Seed: 1, Mitigate: faults.Mitigation{Retry: tt.retry}}
			s := faultyWith(t, e, settings, tt.class, episode.Place{}, &charged).session
			arguments := map[string]string{
				"read_file": `{"path":"text"}`, "write_file": `{"path":"new","content":"x"}`, "terminal": `{"command":"true"}`,
			}[tt.tool]
			c := s.Call(t.Context(), registry.Request{ID: "c", Name: tt.tool, Arguments: arguments})
			if c.Status != tt.status || c.Planted == nil || c.Planted.Class+":" != tt.class+":" && c.Planted.Class+":"+c.Planted.Variant != tt.class || c.Planted.Retries != tt.retries || charged != tt.charged {
				t.Fatalf("%s, %s charged, planted %+v", c.Status, charged, c.Planted)
			}
			if mitigated := tt.status == "ok" && tt.retries > 0; mitigated && (!strings.Contains(c.Result, "17 pears") || c.Planted.Effect != "done" || c.Planted.RealStatus != "ok" || c.Planted.RealResult != c.Result) {
				t.Errorf("%s, planted %+v", c.Result, c.Planted)
			}
			after := s.Call(t.Context(), registry.Request{ID: "d", Turn: 1, Name: "read_file", Arguments: `{"path":"text"}`})
			if want := tt.class == "error_permanent"; (after.Planted != nil) != want {
				t.Errorf("the next call: planted %+v", after.Planted)
			}
		})
	}
}

func TestFaultCrossed(t *testing.T) {
	t.Parallel()
	reads := func(paths ...string) (turn []registry.Request) {
		for i, path := range paths {
			turn = append(turn, registry.Request{ID: string(rune('a' + i)), Index: i, Name: "read_file", Arguments: `{"path":"` + path + `"}`})
		}
		return turn
	}
	commands := []registry.Request{
		{ID: "a", Name: "terminal", Arguments: `{"command":"echo of a; exit 3"}`},
		{ID: "b", Index: 1, Name: "read_file", Arguments: `{"path":"b"}`},
		{ID: "c", Index: 2, Name: "terminal", Arguments: `{"command":"echo of b"}`},
	}
	for name, tt := range map[string]struct {
		turn    []registry.Request
		at      int
		want    string // files whose text each call shows
		planted string
	}{
		"two":       {reads("a", "b"), 1, "ba", "11"},
		"three":     {reads("a", "b", "a"), 1, "bab", "111"},
		"commands":  {commands, 2, "bba", "101"},
		"the first": {reads("a", "b"), 0, "ab", "00"},
		"an error":  {reads("lacking", "b"), 1, "-b", "00"},
		"the same":  {reads("a", "a"), 1, "aa", "00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := open(t, "native", "file", "terminal")
			e.write("a", "of a")
			e.write("b", "of b")
			single := faultyAt(t, e, "crossed", episode.Place{Index: tt.at}, new(time.Duration)).session
			level := atLevel(t, e, faults.Settings{Level: 1, Classes: []string{"crossed"}})
			for _, session := range []*registry.Session{single, level} {
				if session == level && tt.at == 0 {
					continue // each call has the fault there
				}
				got, planted := "", ""
				done := session.CallAll(t.Context(), tt.turn)
				ep := episode.Episode{Calls: session.Trace()}
				for i, c := range done {
					what := "-"
					for _, file := range []string{"a", "b"} {
						if strings.Contains(c.Result, "of "+file) {
							what = file
						}
					}
					got += what
					if p := c.Planted; p == nil {
						planted += "0"
					} else if planted += "1"; p.Effect != "done" || p.RealStatus != "ok" || p.RealResult == c.Result || p.Target == nil || !strings.Contains(p.Target.Wrong, "of "+what) {
						t.Errorf("call %d: planted %+v", i, p)
					}
					if ep.Calls[i].Result != c.Result {
						t.Errorf("call %d: the trace has %s, the model saw %s", i, ep.Calls[i].Result, c.Result)
					}
				}
				if got != tt.want || planted != tt.planted {
					t.Errorf("calls show %s, planted %s; want %s, %s", got, planted, tt.want, tt.planted)
				}
			}
		})
	}
}

// atLevel is a session whose calls get faults at a level.
func atLevel(t *testing.T, e *episodeOf, s faults.Settings) *registry.Session {
	session := e.session.Toolset().Session(registry.SessionConfig{
		Sandbox:  func(context.Context) (sandbox.Sandbox, error) { return e.box, nil },
		Services: []any{faults.New(s, episode.Key{Task: "t"})},
	})
	t.Cleanup(session.Close)
	return session
}
