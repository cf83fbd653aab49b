package plugin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
	"trajgen/tools/plugin"
)

// TestDoesNotStart holds that a plugin that cannot start costs the call, and on the runner, where no agent can have had a
// hand in it, the episode.
func TestDoesNotStart(t *testing.T) {
	b := backend(t, "local")
	program := filepath.Join(t.TempDir(), "gone.sh")
	if err := os.WriteFile(program, must(os.ReadFile("testdata/gone.sh")), 0o755); err != nil {
		t.Fatal(err)
	}
	config := plugin.Config{Name: "gone", Command: []string{program}}
	set, err := plugin.Open(t.Context(), []plugin.Config{config}, options(t, b))
	if err != nil {
		t.Fatal(err)
	}
	p := begin(t, b, set)
	p.want("gone", `{}`, `1`)
	if err := os.Rename(program, program+".gone"); err != nil {
		t.Fatal(err)
	}
	p = begin(t, backend(t, "local"), set)
	p.fails("gone", `{}`, "plugin_start", "gone.sh is not there")
	if p.session.Fault() != nil {
		t.Errorf("fault %+v", p.session.Fault())
	}
	if err := os.Rename(program+".gone", program); err != nil {
		t.Fatal(err)
	}
	onRunner := config
	onRunner.Where = plugin.WhereRunner
	if set, err = plugin.Open(t.Context(), []plugin.Config{onRunner}, options(t, b)); err != nil {
		t.Fatal(err)
	}
	p = begin(t, backend(t, "local"), set)
	if got := p.call("gone", `{}`); got.Status != episode.CallOK || !got.Runner || got.Result != `1` {
		t.Errorf("%+v", got)
	}
	p = begin(t, backend(t, "local"), set)
	set.Close()
	p.fails("gone", `{}`, "plugin_start", "cannot start")
	if fault := p.session.Fault(); fault == nil || fault.Outcome != episode.ToolError {
		t.Errorf("fault %+v", fault)
	}
	config.Command = []string{"no-such-program"}
	if _, err := plugin.Open(t.Context(), []plugin.Config{config}, options(t, b)); err == nil || !strings.Contains(err.Error(), "no-such-program is not there") {
		t.Errorf("error %v", err)
	}
}

// TestDescribe holds what an operator is told of a plugin that does not describe itself well.
func TestDescribe(t *testing.T) {
	tests := []struct{ name, answer, want string }{
		{"no json", `hello`, "standard error"},
		{"no id", `{"tools":[]}`, "without an id"},
		{"other id", `{"id":5,"tools":[]}`, "not open"},
		{"no tools", `{"id":1,"tools":[]}`, "describes no tools"},
		{"misspelt", `{"id":1,"tools":[{"name":"a","description":"a","paramaters":{}}]}`, "paramaters"},
		{"version", `{"id":1,"protocol":2,"tools":[]}`, "version 2"},
		{"no manual", `{"id":1,"tools":[{"name":"a"}]}`, "no description"},
		{"bad name", `{"id":1,"tools":[{"name":"a b","description":"a"}]}`, "letters"},
		{"bad schema", `{"id":1,"tools":[{"name":"a","description":"a","parameters":{"type":"string"}}]}`, "object"},
		{"outside reference", `{"id":1,"tools":[{"name":"a","description":"a","parameters":{"type":"object","properties":{"p":{"$ref":"file:///etc/passwd"}}}}]}`, "schema"},
		{"error", `{"id":1,"error":{"class":"x","message":"no licence"}}`, "no licence"},
		{"timeout", `{"id":1,"tools":[{"name":"a","description":"a","timeout_s":-1}]}`, "timeout_s"},
		{"quits", ``, "ended with status 0"},
	}
	b := backend(t, "local")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := plugin.Config{Name: "p", Command: []string{"sh", "-c", `read line; printf '%s\n' "$0"; echo a word for the operator >&2`, tt.answer}}
			_, err := plugin.Open(t.Context(), []plugin.Config{config}, options(t, b))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "plugin p: ") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if tt.name == "quits" && (err == nil || !strings.Contains(err.Error(), "a word for the operator")) {
				t.Errorf("error %v without the log", err)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	good := plugin.Config{Name: "a", Command: []string{"a"}}
	tests := []struct {
		name   string
		change func(*plugin.Config)
		want   string
	}{
		{"name", func(c *plugin.Config) { c.Name = "A b" }, "small letter"},
		{"command", func(c *plugin.Config) { c.Command = nil }, "no command"},
		{"where", func(c *plugin.Config) { c.Where = "host" }, "sandbox or runner"},
		{"toolset", func(c *plugin.Config) { c.Toolset = "a,b" }, "comma"},
		{"timeout", func(c *plugin.Config) { c.Timeout = -1 }, "timeout"},
		{"env name", func(c *plugin.Config) { c.Env = map[string]string{"A-B": ""} }, "not a name of a variable"},
		{"secret", func(c *plugin.Config) { c.Env = map[string]string{"MY_API_KEY": "x"} }, "env_from"},
		{"secret in the sandbox", func(c *plugin.Config) { c.EnvFrom = []string{"MY_API_KEY"} }, "where: runner"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.change(&c)
			if err := plugin.Validate([]plugin.Config{c}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if err := plugin.Validate([]plugin.Config{good, good}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("error %v", err)
	}
	ordinary := good
	ordinary.Env = map[string]string{"MAX_TOKENS": "5", "TOKENIZERS_PARALLELISM": "false"}
	if err := plugin.Validate([]plugin.Config{good, {Name: "b", Command: []string{"b"}}}); err != nil {
		t.Error(err)
	}
	if err := plugin.Validate([]plugin.Config{ordinary}); err != nil {
		t.Error(err)
	}
}

// TestTools holds that a tool is what its plugin and its declaration say.
func TestTools(t *testing.T) {
	b := backend(t, "local")
	answer := `{"id":1,"concurrent":true,"tools":[` +
		`{"name":"a","description":"A.","timeout_s":90,"untrusted":"web","reads":["from","others"],"writes":["to"],` +
		`"parameters":{"type":"object","properties":{"from":{"type":"string"},"others":{"type":"array","items":{"type":"string"}},"to":{"type":"string"}}}},` +
		`{"name":"b","description":"B.","timeout_s":0.5},{"name":"c","description":"C.","reads":[]}]}`
	config := plugin.Config{Name: "p", Command: []string{"sh", "-c", `read line; printf '%s\n' "$0"; cat`, answer}, Timeout: time.Minute, Toolset: "tables"}
	set, err := plugin.Open(t.Context(), []plugin.Config{config}, options(t, b))
	if err != nil {
		t.Fatal(err)
	}
	tools := set.Tools()
	if len(tools) != 3 {
		t.Fatalf("%d tools", len(tools))
	}
	a, second, third := tools[0], tools[1], tools[2]
	if a.Timeout != time.Minute || second.Timeout != time.Second/2 || third.Timeout != time.Minute {
		t.Errorf("timeouts %s, %s, %s", a.Timeout, second.Timeout, third.Timeout)
	}
	if a.Untrusted != "web" || a.Toolset != "tables" || a.NoSandbox || a.Runner {
		t.Errorf("%+v", a)
	}
	got := a.Access([]byte(`{"from":"x","others":["y","z"],"to":null}`))
	if strings.Join(got.Reads, " ") != "x y z" || len(got.Writes) != 0 {
		t.Errorf("access %+v", got)
	}
	if second.Access != nil || third.Access == nil {
		t.Error("without lists a call runs alone; with empty ones it touches nothing")
	}
	config.Name = "q"
	if _, err := plugin.Open(t.Context(), []plugin.Config{{Name: "p", Command: config.Command}, config}, options(t, b)); err == nil ||
		!strings.Contains(err.Error(), "tool a is in plugin p already") {
		t.Errorf("error %v", err)
	}
}

// TestDigest holds that a run is named after what its plugins are, wherever they lie.
func TestDigest(t *testing.T) {
	b := backend(t, "local")
	digest := func(change func(*plugin.Config, string)) string {
		t.Helper()
		dir := t.TempDir()
		data, err := os.ReadFile("testdata/trouble.py")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "trouble.py")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		config := trouble()
		config.Files = []string{path}
		if change != nil {
			change(&config, path)
		}
		set, err := plugin.Open(t.Context(), []plugin.Config{config}, options(t, b))
		if err != nil {
			t.Fatal(err)
		}
		return set.Digest()
	}
	first := digest(nil)
	if again := digest(nil); again != first {
		t.Errorf("%s and %s for the same plugin in two places", first, again)
	}
	seen := map[string]string{first: "nothing"}
	for name, change := range map[string]func(*plugin.Config, string){
		"env":        func(c *plugin.Config, _ string) { c.Env["COLOUR"] = "blue" },
		"concurrent": func(c *plugin.Config, _ string) { c.Env["CONCURRENT"] = "1" },
		"where":      func(c *plugin.Config, _ string) { c.Where = plugin.WhereRunner },
		"timeout":    func(c *plugin.Config, _ string) { c.Timeout = time.Minute },
		"scripts":    func(c *plugin.Config, _ string) { c.Scripts = true },
		"content": func(_ *plugin.Config, path string) {
			if err := os.WriteFile(path, append([]byte("# changed\n"), must(os.ReadFile(path))...), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		got := digest(change)
		if other, ok := seen[got]; ok {
			t.Errorf("the digest does not change with %s (like %s)", name, other)
		}
		seen[got] = name
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// stuck is a sandbox that cannot be closed.
type stuck struct{ sandbox.Sandbox }

func (s stuck) Close() error { return errors.Join(s.Sandbox.Close(), errors.New("the device is busy")) }

// TestSandboxThatDoesNotClose holds that what was left behind by asking the plugins is told.
func TestSandboxThatDoesNotClose(t *testing.T) {
	b := backend(t, "local")
	opts := options(t, b)
	opts.Sandbox = func(ctx context.Context) (sandbox.Sandbox, error) {
		box, err := b.Open(ctx, sandbox.Spec{ID: "stuck"})
		return stuck{box}, err
	}
	if _, err := plugin.Open(t.Context(), []plugin.Config{trouble()}, opts); err == nil || !strings.Contains(err.Error(), "the device is busy") {
		t.Errorf("Open = %v", err)
	}
}
