package registry_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"trajgen/registry"

	"github.com/google/go-cmp/cmp"
)

func member(name, toolset string) registry.Tool {
	return toolOf(registry.Definition{Name: name, Toolset: toolset, Description: name + " of " + toolset},
		func(context.Context, *registry.Env) (any, error) { return none{}, nil })
}

func builtin(t *testing.T) *registry.Registry {
	t.Helper()
	r, err := registry.New(member("terminal", "terminal"), member("process", "terminal"), member("read_file", "file"),
		member("write_file", "file"), member("patch", "file"), member("search_files", "file"),
		member("todo", "todo"), member("execute_code", "code_execution"), member("odd", "own"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResolve(t *testing.T) {
	const (
		files = "patch read_file search_files write_file"
		web   = "web_extract web_search"
	)
	tests := []struct {
		name, enabled, disabled, want string
	}{
		{"one", "file", "", files},
		{"union", "file todo file", "", "patch read_file search_files todo write_file"},
		{"includes", "debugging", "", "patch process read_file search_files terminal " + web + " write_file"},
		{"not built", "web vision", "", "vision_analyze " + web},
		{"disabled after enabled", "debugging", "file", "process terminal " + web},
		{"disabled composite", "file terminal", "debugging", "read_terminal"},
		{"disabled tool", "file", "patch web_search", "read_file search_files write_file"},
		{"a toolset goes before a tool of its name", "terminal file", "terminal", files},
		{"disabled legacy name", "file todo", "file_tools", "todo"},
		{"legacy", "file_tools terminal_tools", "", "patch read_file search_files terminal write_file"},
		{"a tool's own toolset", "own", "", "odd"},
		{"disable all", "all", "all", ""},
		{"nothing", "", "", ""},
	}
	r := builtin(t)
	for _, tt := range tests {
		got, err := r.Resolve(strings.Fields(tt.enabled), strings.Fields(tt.disabled))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: Resolve(%s, %s) = %s, want %s", tt.name, tt.enabled, tt.disabled, got, tt.want)
		}
	}
	everything, err := r.Resolve(nil, nil)
	if len(everything) != 84 || err != nil { // 83 of the table and "odd"
		t.Errorf("Resolve(nil) = %d tools, %v, want everything", len(everything), err)
	}
	for _, name := range []string{"all", "*"} {
		if got, err := r.Resolve([]string{name}, nil); err != nil || !slices.Equal(got, everything) {
			t.Errorf("Resolve(%s) = %s, %v, want everything", name, got, err)
		}
	}
}

func TestResolveUnknown(t *testing.T) {
	_, err := builtin(t).Resolve([]string{"file", "Web", "terminl", "read_file", ""}, []string{"nosuch"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		`unknown toolset "Web" (did you mean "web"?)`, `unknown toolset "terminl" (did you mean "terminal"?)`,
		`unknown toolset "nosuch"`, `unknown toolset ""`, `"read_file" (a tool of toolset "file")`, "there are all, browser, ",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not say %s: %v", part, err)
		}
	}
}

func TestCyclesAndDiamonds(t *testing.T) {
	r, err := registry.New(member("a1", "x"), member("b1", "x"), member("c1", "x"), member("d1", "x"))
	if err != nil {
		t.Fatal(err)
	}
	r, err = r.WithToolsets(map[string]registry.ToolsetDef{
		"A": {Tools: []string{"a1"}, Includes: []string{"B", "C"}},
		"B": {Tools: []string{"b1"}, Includes: []string{"D"}},
		"C": {Tools: []string{"c1"}, Includes: []string{"D"}},
		"D": {Tools: []string{"d1"}, Includes: []string{"A"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"A", "B", "C", "D"} {
		got, err := r.Resolve([]string{name}, nil)
		if diff := cmp.Diff([]string{"a1", "b1", "c1", "d1"}, got); diff != "" || err != nil {
			t.Errorf("Resolve(%s): %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestWithToolsetsRefuses(t *testing.T) {
	r := builtin(t)
	_, err := r.WithToolsets(map[string]registry.ToolsetDef{
		"file": {}, "all": {}, "web_tools": {}, "": {}, "a b": {}, "own": {},
		"mine":  {Tools: []string{"read_fil", "web_search"}, Includes: []string{"terminl", "other"}},
		"other": {Includes: []string{"mine", "all", "file_tools"}},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		`toolset "file" exists already`, `toolset "all" exists already`, `toolset "web_tools" exists already`,
		`toolset "own" exists already`, `toolset ""`, `toolset "a b"`,
		`unknown tool "read_fil" (did you mean "read_file"?)`, `unknown toolset "terminl" (did you mean "terminal"?)`,
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error does not say %s: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), "web_search") || strings.Contains(err.Error(), `"other"`) {
		t.Errorf("error names what exists: %v", err)
	}
	if _, err := r.Resolve([]string{"mine"}, nil); err == nil {
		t.Error("the registry itself was changed")
	}
}

func TestToolsets(t *testing.T) {
	all := builtin(t).Toolsets()
	if len(all) != 63 { // 61 of the table, the historic rl, and "own"
		t.Errorf("%d toolsets, want 63", len(all))
	}
	for _, info := range all {
		if info.Description == "" && info.Name != "own" {
			t.Errorf("%s has no description", info.Name)
		}
		if info.Name == "debugging" {
			want := registry.ToolsetInfo{
				Name: "debugging", Description: info.Description, Direct: []string{"process", "terminal"},
				Includes: []string{"file", "web"}, Count: 8, Composite: true, RequiresEnv: []string{},
				Resolved: strings.Fields("patch process read_file search_files terminal web_extract web_search write_file"),
			}
			if diff := cmp.Diff(want, info); diff != "" {
				t.Errorf("debugging (-want +got):\n%s", diff)
			}
		}
	}
}

func TestSelect(t *testing.T) {
	moon := registry.Planned(registry.Definition{Name: "moon", Toolset: "sky"})
	sun := toolOf(registry.Definition{Name: "sun", Toolset: "sky", Description: "plain",
		Describe: func(have []registry.Tool) string {
			text := "with <"
			for i, tool := range have {
				text += strings.Repeat(",", min(i, 1)) + tool.Name
			}
			return text + ">"
		}},
		func(context.Context, *registry.Env) (any, error) { return none{}, nil })
	r, err := registry.New(moon, sun, member("read_file", "file"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := r.Select([]string{"sky", "vision", "file"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"read_file", "sun"}, set.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"moon": "outside of what trajgen is for", "patch": "outside of what trajgen is for", "search_files": "outside of what trajgen is for",
		"vision_analyze": "outside of what trajgen is for", "write_file": "outside of what trajgen is for",
	}
	if diff := cmp.Diff(want, set.Missing()); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	schema := `{"type":"function","function":{"name":"sun","description":"with <read_file,sun>",` +
		`"parameters":{"type":"object","properties":{}}}}`
	if diff := cmp.Diff(schema, string(set.Schemas()[1])); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	if _, err := r.Select([]string{"sun"}, nil); err == nil {
		t.Error("a tool's name is not a toolset")
	}
}

func TestLacking(t *testing.T) {
	r := builtin(t)
	r = r.Lacking(map[string]string{"patch": "it needs a needle"})
	set, err := r.Select([]string{"file"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set.Has("patch") || !set.Has("read_file") || set.Missing()["patch"] != "it needs a needle" {
		t.Errorf("tools %v, missing %v", set.Names(), set.Missing())
	}
	if names, err := r.Resolve([]string{"file"}, nil); err != nil || !slices.Contains(names, "patch") {
		t.Errorf("Resolve = %v, %v", names, err)
	}
	got := set.Session(registry.SessionConfig{}).Call(t.Context(), registry.Request{Name: "patch", Arguments: "{}"})
	if got.Status != "unavailable" || got.Toolset != "file" || !strings.Contains(got.Result, "is not available: it needs a needle") {
		t.Errorf("%+v", got)
	}
}

func TestSchemasAreStable(t *testing.T) {
	first, err := builtin(t).Select(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := builtin(t).Select([]string{"*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Schemas(), second.Schemas()); diff != "" {
		t.Errorf("schemas differ:\n%s", diff)
	}
	for _, schema := range first.Schemas() {
		if !json.Valid(schema) {
			t.Errorf("not JSON: %s", schema)
		}
	}
}
