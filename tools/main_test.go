package tools_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"trajgen/outputs/media"
	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// episodeOf is one episode with all built-in tools in a sandbox of its own.
type episodeOf struct {
	t       testing.TB
	session *registry.Session
	box     sandbox.Sandbox
	images  *media.Store // those that are kept; nil where none are
	n       int
}

// each runs a test in a fresh sandbox of every backend.
func each(t *testing.T, test func(t *testing.T, e *episodeOf)) {
	t.Helper()
	for _, name := range sandbox.Names() {
		t.Run(name, func(t *testing.T) { test(t, open(t, name, "all")) })
	}
}

func open(t testing.TB, backend string, toolsets ...string) *episodeOf {
	t.Helper()
	return openLimited(t, backend, registry.ResultLimits{}, toolsets...)
}

// openLimited is open with limits on what the model gets.
func openLimited(t testing.TB, backend string, limits registry.ResultLimits, toolsets ...string) *episodeOf {
	t.Helper()
	return openWith(t, backend, limits, nil, toolsets...)
}

// openEnv is open with an environment.
func openEnv(t testing.TB, backend string, env map[string]string) *episodeOf {
	t.Helper()
	return openWith(t, backend, registry.ResultLimits{}, env, "all")
}

func openWith(t testing.TB, backend string, limits registry.ResultLimits, env map[string]string, toolsets ...string) *episodeOf {
	t.Helper()
	b, err := sandbox.Open(backend, sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, backend, err)
	t.Cleanup(func() { b.Close() })
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select(toolsets, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The search helper is this program: under the race detector it would sleep for a second at each exit.
	all := map[string]string{"GORACE": "atexit_sleep_ms=0"}
	maps.Copy(all, env)
	box, err := b.Open(t.Context(), sandbox.Spec{ID: "tools", Env: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	session := set.Session(registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil }, Limits: limits,
	})
	t.Cleanup(session.Close)
	return &episodeOf{t: t, session: session, box: box}
}

// args are a call's arguments.
type args = map[string]any

// call makes a call and returns its trace.
func (e *episodeOf) call(name string, a args) episode.ToolCall {
	e.t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		e.t.Fatal(err)
	}
	e.n++
	return e.session.Call(e.t.Context(), registry.Request{ID: fmt.Sprintf("call_%d", e.n), Name: name, Arguments: string(text)})
}

// ok makes a call that must go well and returns its result.
func (e *episodeOf) ok(name string, a args) map[string]any {
	e.t.Helper()
	call := e.call(name, a)
	if call.Status != episode.CallOK {
		e.t.Fatalf("%s(%v): status %s (%s): %s", name, a, call.Status, call.ErrorClass, call.Result)
	}
	return decode(e.t, call.Result)
}

// fails makes a call that must fail with a class and returns its result.
func (e *episodeOf) fails(class, name string, a args) map[string]any {
	e.t.Helper()
	call := e.call(name, a)
	if call.Status == episode.CallOK || call.ErrorClass != class {
		e.t.Fatalf("%s(%v): status %s, class %q, want class %q: %s", name, a, call.Status, call.ErrorClass, class, call.Result)
	}
	return decode(e.t, call.Result)
}

func (e *episodeOf) write(path, content string) {
	e.t.Helper()
	if err := e.box.Files().Write(e.t.Context(), sandbox.FileWrite{Path: path, Data: []byte(content)}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *episodeOf) wantFile(path, want string) {
	e.t.Helper()
	data, _, err := e.box.Files().Read(e.t.Context(), path, 0, 1<<20)
	if err != nil {
		e.t.Fatal(err)
	}
	if string(data) != want {
		e.t.Errorf("%s holds %q, want %q", path, data, want)
	}
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var result map[string]any
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatalf("result %q: %v", text, err)
	}
	return result
}

func (e *episodeOf) wantOutput(command, want string) {
	e.t.Helper()
	if got := e.ok("terminal", args{"command": command})["output"]; got != want {
		e.t.Errorf("terminal %q printed %q, want %q", command, got, want)
	}
}

func wantContains(t testing.TB, got any, want string) {
	t.Helper()
	if text := fmt.Sprint(got); !strings.Contains(text, want) {
		t.Errorf("got %q, want it to contain %q", text, want)
	}
}
