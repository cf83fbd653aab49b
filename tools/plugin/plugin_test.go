package plugin_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	_ "trajgen/sandbox/local"
	_ "trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
	"trajgen/tools/plugin"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// backend opens one of the sandbox's.
func backend(t *testing.T, name string) sandbox.Backend {
	t.Helper()
	b, err := sandbox.Open(name, sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, name, err)
	t.Cleanup(func() { b.Close() })
	return b
}

// options let plugins of a test describe themselves.
func options(t *testing.T, b sandbox.Backend) plugin.Options {
	t.Helper()
	return plugin.Options{
		StateDir: t.TempDir(),
		Sandbox: func(ctx context.Context) (sandbox.Sandbox, error) {
			return b.Open(ctx, sandbox.Spec{ID: "describe"})
		},
		Environ: func(name string) (string, bool) { return "hunter2-" + name, name == "SECRET" },
	}
}

// playing is one episode with plugins.
type playing struct {
	t       *testing.T
	session *registry.Session
	box     sandbox.Sandbox
	n       int
}

func play(t *testing.T, backendName string, configs ...plugin.Config) *playing {
	t.Helper()
	b := backend(t, backendName)
	set, err := plugin.Open(t.Context(), configs, options(t, b))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return begin(t, b, set)
}

func begin(t *testing.T, b sandbox.Backend, set *plugin.Set) *playing {
	t.Helper()
	reg, err := registry.New(set.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := reg.Select([]string{"all"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	box, err := b.Open(t.Context(), sandbox.Spec{ID: "episode"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	session := tools.Session(registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil },
	})
	t.Cleanup(session.Close)
	return &playing{t: t, session: session, box: box}
}

func (p *playing) request(name, arguments string) registry.Request {
	p.n++
	return registry.Request{ID: fmt.Sprintf("call_%d", p.n), Index: p.n, Name: name, Arguments: arguments}
}

func (p *playing) call(name, arguments string) episode.ToolCall {
	p.t.Helper()
	return p.session.Call(p.t.Context(), p.request(name, arguments))
}

func (p *playing) want(name, arguments, want string) {
	p.t.Helper()
	if got := p.call(name, arguments); got.Status != episode.CallOK || got.Result != want {
		p.t.Errorf("%s(%s): %s, %s, want %s", name, arguments, got.Status, got.Result, want)
	}
}

func (p *playing) fails(name, arguments, class, text string) episode.ToolCall {
	p.t.Helper()
	got := p.call(name, arguments)
	if got.Status == episode.CallOK || got.ErrorClass != class || !strings.Contains(got.Result, text) {
		p.t.Errorf("%s(%s): %s, class %q: %s, want class %q and %q", name, arguments, got.Status, got.ErrorClass, got.Result, class, text)
	}
	return got
}

func trouble(env ...string) plugin.Config {
	c := plugin.Config{Name: "trouble", Command: []string{"python3", "trouble.py"}, Files: []string{"testdata/trouble.py"}, Env: map[string]string{}}
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		c.Env[name] = value
	}
	return c
}

// each runs a test in every backend that needs no server.
func each(t *testing.T, test func(t *testing.T, backend string)) {
	t.Helper()
	for _, name := range []string{"local", "native"} {
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

func TestExamples(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		p := play(t, backend,
			plugin.Config{Name: "csv", Command: []string{"python3", "csv_tools.py"}, Files: []string{"../../examples/plugins/csv_tools.py"}},
			plugin.Config{Name: "workspace", Command: []string{"./workspace.sh"}, Files: []string{"../../examples/plugins/workspace.sh"}})
		data := []byte("name,size\na,1\nb,2.5\nc,\nd,inf\ne,nan\n")
		if err := p.box.Files().Write(t.Context(), sandbox.FileWrite{Path: "a.csv", Data: data}, sandbox.FileWrite{Path: "x.csv", Data: []byte("a\n\xff\n")}); err != nil {
			t.Fatal(err)
		}
		p.fails("csv_columns", `{"path":"x.csv"}`, "not_csv", "codec can't decode")
		if err := p.box.Files().Remove(t.Context(), "x.csv"); err != nil {
			t.Fatal(err)
		}
		p.want("csv_columns", `{"path":"a.csv"}`, `{"columns":["name","size"],"rows":5}`)
		p.want("csv_summary", `{"path":"a.csv","column":"size"}`, `{"count":2,"missing":3,"mean":1.75,"min":1.0,"max":2.5}`)
		p.fails("csv_summary", `{"path":"a.csv","column":"colour"}`, "no_column", "it has name, size")
		p.fails("csv_columns", `{"path":"b.csv"}`, "not_found", "No such file")
		p.want("workspace_size", `{}`, fmt.Sprintf(`{"files":1,"bytes":%d}`, len(data)))
		if got := p.call("csv_summary", `{}`); got.Status != episode.CallInvalidArguments {
			t.Errorf("no arguments: %s", got.Status)
		}
		if got := p.session.Toolset().Names(); strings.Join(got, " ") != "csv_columns csv_summary workspace_size" {
			t.Errorf("tools %v", got)
		}
	})
}
