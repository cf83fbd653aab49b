package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	_ "trajgen/sandbox/local"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// local is a sandbox without isolation, for what the registry writes.
func local(t *testing.T) sandbox.Sandbox {
	t.Helper()
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	box, err := backend.Open(t.Context(), sandbox.Spec{ID: "registry"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

type sayArgs struct {
	Say string `json:"say"`
}

// sayers are tools that return what they are told to: say as the text of a result, raw as the whole result, fail as an
// error, reader as the tool that reads stored results.
func sayers() []registry.Tool {
	define := func(d registry.Definition, f func(string) (any, error)) registry.Tool {
		d.Toolset, d.MaxResult = "test", 10_000
		d.Access = func(json.RawMessage) registry.Access { return registry.Access{} }
		return registry.Define(d, func(ctx context.Context, env *registry.Env, args sayArgs) (any, error) {
			if _, err := env.Sandbox(ctx); err != nil {
				return nil, err
			}
			return f(args.Say)
		})
	}
	return []registry.Tool{
		define(registry.Definition{Name: "say"}, func(text string) (any, error) {
			return map[string]any{"output": text, "exit_code": 3, "truncated": false}, nil
		}),
		define(registry.Definition{Name: "raw"}, func(text string) (any, error) { return json.RawMessage(text), nil }),
		define(registry.Definition{Name: "fail"}, func(text string) (any, error) { return nil, registry.Failf("long", "%s", text) }),
		define(registry.Definition{Name: "reader", Reader: true}, func(text string) (any, error) { return text, nil }),
	}
}

func say(text string) string {
	arguments, _ := json.Marshal(sayArgs{text})
	return string(arguments)
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d of \"many\"\n", i+1)
	}
	return b.String()
}

type shownResult struct {
	Error     string `json:"error"`
	Truncated bool   `json:"truncated"`
	Bytes     int    `json:"original_bytes"`
	Stored    string `json:"stored"`
	Note      string `json:"note"`
	Preview   string `json:"preview"`
	ExitCode  int    `json:"exit_code"`
}

func TestLongResultIsStored(t *testing.T) {
	text := numbered(2000)
	list, _ := json.Marshal([]string{text, "last"})
	indented, _ := json.MarshalIndent([]string{text, "last"}, "", "  ")
	two, _ := json.Marshal(map[string]string{"a": text, "b": text})
	tests := []struct {
		name, tool, say string
		file, stored    string
	}{
		{"text", "say", text, "0-7-call_1.txt", text},
		{"one line", "say", strings.Repeat("ä", 50_000), "0-7-call_1.txt", strings.Repeat("ä", 50_000)},
		{"list", "raw", string(list), "0-7-call_1.json", string(indented) + "\n"},
		{"two texts", "raw", string(two), "0-7-call_1.json", ""},
		{"a member of our own", "raw", `{"stored":1,"text":"` + strings.Repeat("x", 20_000) + `"}`, "0-7-call_1.json", ""},
		{"string", "raw", `"` + strings.Repeat("x", 20_000) + `"`, "0-7-call_1.json", ""},
		{"failure", "fail", text, "0-7-call_1.txt", text},
		{"NUL", "say", strings.Repeat("\x00", 20_000), "0-7-call_1.json", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			box := local(t)
			s := session(t, registry.SessionConfig{
				Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil },
			}, sayers()...)
			got := s.Call(t.Context(), registry.Request{ID: "call_1", Index: 7, Name: tt.tool, Arguments: say(tt.say)})
			if want := path.Join(box.Layout().Tmp, "trajgen-results", tt.file); got.Stored != want {
				t.Errorf("stored = %q, want %q", got.Stored, want)
			}
			var shown shownResult
			if err := json.Unmarshal([]byte(got.Result), &shown); err != nil {
				t.Fatalf("result %s: %v", got.Result, err)
			}
			if len(got.Result) > 10_000 || !got.Truncated || !shown.Truncated || got.ResultBytes < 20_000 ||
				shown.Bytes != got.ResultBytes || shown.Stored != got.Stored || !strings.Contains(shown.Note, "with reader from line") {
				t.Errorf("%d bytes: %s", got.ResultBytes, got.Result)
			}
			if tt.tool == "say" && shown.ExitCode != 3 && tt.name != "NUL" || (tt.tool == "fail") != (shown.Error != "") {
				t.Errorf("result lost something: %s", got.Result)
			}
			data, _, err := box.Files().Read(t.Context(), got.Stored, 0, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(data), shown.Preview) || shown.Preview == "" {
				t.Errorf("preview %q is not how the file begins", shown.Preview)
			}
			if tt.stored != "" && string(data) != tt.stored {
				t.Errorf("stored %d bytes: %.100s", len(data), data)
			}
			if tt.name == "text" && !strings.HasSuffix(shown.Preview, "\n") {
				t.Errorf("preview ends within a line: %q", shown.Preview)
			}
		})
	}
}

// However small the limit is, a result keeps to it: with long other members, long names, and words that grow in JSON.
func TestSmallLimits(t *testing.T) {
	box := local(t)
	for _, limit := range []int{1, 512, 600, 1000, 1999} {
		s := session(t, registry.SessionConfig{
			Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil },
			Limits:  registry.ResultLimits{Tools: map[string]int{"raw": limit, "fail": limit, "reader": limit}},
		}, sayers()...)
		object, _ := json.Marshal(map[string]string{"text": numbered(100), "other": strings.Repeat("y", 1500)})
		named, _ := json.Marshal(map[string]string{strings.Repeat("n", 1500): numbered(100)})
		for _, give := range []struct{ tool, text string }{
			{"raw", string(object)}, {"raw", string(named)}, {"fail", strings.Repeat("\x01", 5000)}, {"fail", strings.Repeat("𝄞", 5000)},
			{"reader", strings.Repeat("\x01", 5000)},
		} {
			got := call(t, s, give.tool, say(give.text))
			if most := max(limit, 512); len(got.Result) > most || !got.Truncated {
				t.Errorf("limit %d, %s %.10q: %d bytes: %s", limit, give.tool, give.text, len(got.Result), got.Result)
			}
			if stored := strings.Contains(got.Result, `"stored":`); stored != (got.Stored != "") {
				t.Errorf("limit %d, %s: stored as %q: %s", limit, give.tool, got.Stored, got.Result)
			}
		}
	}
}

// fullDisk is a sandbox that takes no file.
type fullDisk struct{ sandbox.Sandbox }

func (f fullDisk) Files() sandbox.Files { return fullFiles{f.Sandbox.Files()} }

type fullFiles struct{ sandbox.Files }

func (fullFiles) Write(context.Context, ...sandbox.FileWrite) error { return syscall.ENOSPC }

// Where a result cannot be kept, or not be read, its beginning and its end are shown.
func TestLongResultIsCut(t *testing.T) {
	box := local(t)
	open := func(context.Context) (sandbox.Sandbox, error) { return box, nil }
	quiet := toolOf(registry.Definition{Name: "quiet", Toolset: "test", MaxResult: 1000, NoSandbox: true},
		func(context.Context, *registry.Env) (any, error) {
			return map[string]string{"text": numbered(100)}, nil
		})
	tests := map[string]func() episode.ToolCall{
		"the disk refuses": func() episode.ToolCall {
			full := func(context.Context) (sandbox.Sandbox, error) { return fullDisk{box}, nil }
			return call(t, session(t, registry.SessionConfig{Sandbox: full}, sayers()...), "say", say(numbered(2000)))
		},
		"a reader": func() episode.ToolCall {
			return call(t, session(t, registry.SessionConfig{Sandbox: open}, sayers()...), "reader", say(numbered(2000)))
		},
		"no sandbox": func() episode.ToolCall { return call(t, session(t, registry.SessionConfig{}, quiet), "quiet", "") },
		"nested": func() episode.ToolCall {
			s := session(t, registry.SessionConfig{Sandbox: open}, sayers()...)
			return s.Call(t.Context(), registry.Request{ID: "1.1", Parent: "1", Name: "say", Arguments: say(numbered(2000))})
		},
	}
	for name, run := range tests {
		got := run()
		if got.Stored != "" || !got.Truncated || !strings.Contains(got.Result, `"head":`) || !strings.Contains(got.Result, `"tail":`) {
			t.Errorf("%s: stored = %q: %.300s", name, got.Stored, got.Result)
		}
	}
}

func TestHostileIDs(t *testing.T) {
	box := local(t)
	s := session(t, registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil },
	}, sayers()...)
	seen := map[string]bool{}
	for _, id := range []string{"../../etc/passwd", "..", "", "a/b", "a_b", "a\x00b", strings.Repeat("x", 1000), "\xff", "ä"} {
		got := s.Call(t.Context(), registry.Request{ID: id, Name: "say", Arguments: say(numbered(1000))})
		if path.Dir(got.Stored) != path.Join(box.Layout().Tmp, "trajgen-results") || len(path.Base(got.Stored)) > 80 || seen[got.Stored] {
			t.Errorf("%q is stored as %q: %.200s", id, got.Stored, got.Result)
		}
		seen[got.Stored] = true
	}
}

// What the agent has planted where a result will be stored is replaced and not followed.
func TestPlantedLink(t *testing.T) {
	box := local(t)
	s := session(t, registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil },
	}, sayers()...)
	dir := path.Join(box.Layout().Tmp, "trajgen-results")
	_, err := sandbox.Run(t.Context(), box, sandbox.Command{Args: []string{"sh", "-c",
		"echo precious > precious && mkdir -p " + dir + " && ln -s $PWD/precious " + dir + "/0-0-call_1.txt"}}, sandbox.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "say", say(numbered(1000))); got.Stored == "" {
		t.Errorf("not stored: %.200s", got.Result)
	}
	data, _, err := box.Files().Read(t.Context(), "precious", 0, 100)
	if string(data) != "precious\n" || err != nil {
		t.Errorf("precious = %q, %v", data, err)
	}
}

func TestTurnLimit(t *testing.T) {
	box := local(t)
	open := func(context.Context) (sandbox.Sandbox, error) { return box, nil }
	tests := []struct {
		name  string
		limit int
		give  []string // tool:kilobytes
		want  []string
	}{
		{"fits", 0, []string{"say:9", "say:9"}, []string{"whole", "whole"}},
		{"the longest goes first", 20_000, []string{"say:6", "say:9", "say:7"}, []string{"whole", "stored", "whole"}},
		{"until it fits", 12_000, []string{"say:6", "say:9", "say:7"}, []string{"whole", "stored", "stored"}},
		{"equals in call order", 15_000, []string{"say:7", "say:7", "say:7"}, []string{"stored", "stored", "whole"}},
		{"a reader comes last", 15_000, []string{"reader:9", "say:6", "say:6"}, []string{"whole", "stored", "stored"}},
		{"a reader is cut", 8_000, []string{"reader:9", "reader:3"}, []string{"cut", "whole"}},
		{"a reader alone", 8_000, []string{"reader:9"}, []string{"whole"}},
		{"small ones stay", 5_000, []string{"say:3", "say:3", "say:3"}, []string{"whole", "whole", "whole"}},
		{"longer than its own limit", 20_000, []string{"say:30", "say:9"}, []string{"stored", "whole"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := session(t, registry.SessionConfig{Sandbox: open, Limits: registry.ResultLimits{Turn: tt.limit}}, sayers()...)
			var reqs []registry.Request
			for i, give := range tt.give {
				name, size, _ := strings.Cut(give, ":")
				var kilobytes int
				fmt.Sscan(size, &kilobytes)
				reqs = append(reqs, registry.Request{ID: fmt.Sprint(i), Index: i, Name: name, Arguments: say(strings.Repeat("x", kilobytes*1000))})
			}
			var got []string
			for _, call := range s.CallAll(t.Context(), reqs) {
				switch {
				case call.Stored != "" && call.Truncated:
					got = append(got, "stored")
				case call.Truncated:
					got = append(got, "cut")
				default:
					got = append(got, "whole")
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			for i, call := range s.Trace() {
				if (call.Stored != "") != (tt.want[i] == "stored") {
					t.Errorf("trace %d: stored = %q", i, call.Stored)
				}
			}
		})
	}
}

func TestResultLimitOfARun(t *testing.T) {
	box := local(t)
	s := session(t, registry.SessionConfig{
		Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil },
		Limits:  registry.ResultLimits{Tools: map[string]int{"say": 700}},
		Secrets: registry.NewSecrets(map[string]string{"KEY": "hush-hush-hush"}),
	}, sayers()...)
	got := call(t, s, "say", say("hush-hush-hush\n"+numbered(100)))
	if got.Stored == "" || len(got.Result) > 700 || len(got.Masked) != 1 {
		t.Errorf("stored = %q, masked = %q, %d bytes: %s", got.Stored, got.Masked, len(got.Result), got.Result)
	}
	data, _, err := box.Files().Read(t.Context(), got.Stored, 0, 1000)
	if err != nil || !strings.HasPrefix(string(data), "[secret KEY]\nline 1 ") {
		t.Errorf("stored %.100q, %v", data, err)
	}
}
