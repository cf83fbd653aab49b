package tools_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// TestSchemas shows what models are shown.
func TestSchemas(t *testing.T) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.Select([]string{"terminal", "file", "code_execution", "todo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"execute_code", "patch", "process", "read_file", "search_files", "terminal", "todo", "write_file"}; !slices.Equal(set.Names(), want) {
		t.Errorf("tools %v, want %v", set.Names(), want)
	}
	goldenSchemas(t, set)
}

// goldenSchemas holds what models are shown of tools.
func goldenSchemas(t *testing.T, set *registry.Toolset) {
	t.Helper()
	var got bytes.Buffer
	for _, schema := range set.Schemas() {
		if err := json.Indent(&got, schema, "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
	}
	golden := filepath.Join("testdata", t.Name()+".golden")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("schemas changed (-golden +now); make golden refreshes them:\n%s", diff)
	}
}

// TestSameCallsSameBytes plays the same calls in two fresh sandboxes.
func TestSameCallsSameBytes(t *testing.T) {
	for _, name := range sandbox.Names() {
		t.Run(name, func(t *testing.T) {
			play := func() []string {
				e := open(t, name, "all")
				var results []string
				for _, call := range []struct {
					name string
					args args
				}{
					{"terminal", args{"command": "mkdir d; cd d; echo x > f; ls -a; env | sort | grep -v -e TRAJGEN -e PWD -e HOME -e TMPDIR"}},
					{"write_file", args{"path": "~/../workspace/a.json", "content": "{}"}},
					{"patch", args{"path": "d/f", "old_string": "x", "new_string": "y"}},
					{"search_files", args{"pattern": ".", "output_mode": "count"}},
					{"read_file", args{"path": "nosuch"}},
					{"execute_code", args{"code": "from trajgen_tools import terminal\nprint(terminal('echo hi'))\nraise ValueError('x')"}},
					{"terminal", args{"command": "cat", "background": true}},
					{"process", args{"action": "list"}},
					{"process", args{"action": "kill", "session_id": "proc_1"}},
					{"process", args{"action": "poll", "session_id": "proc_1"}},
				} {
					// A local sandbox lies somewhere else each time.
					dir := filepath.Dir(e.box.Layout().Workdir)
					results = append(results, string(bytes.ReplaceAll([]byte(e.call(call.name, call.args).Result), []byte(dir), nil)))
				}
				return results
			}
			if diff := cmp.Diff(play(), play()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
