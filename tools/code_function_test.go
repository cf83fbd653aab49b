package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/sandbox"
	"trajgen/tools"
)

// TestScriptsCallFurtherTools has a script call tools that say that scripts can, and one that does not.
func TestScriptsCallFurtherTools(t *testing.T) {
	define := func(name string, script bool, parameters string) registry.Tool {
		tool, err := registry.DefineSchema(registry.Definition{Name: name, Toolset: "plugin-x", Description: "Echo.", Script: script},
			json.RawMessage(parameters), func(_ context.Context, _ *registry.Env, arguments json.RawMessage) (any, error) {
				return map[string]any{"got": arguments}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return tool
	}
	reg, err := registry.New(append(tools.Builtin(),
		define("count-rows", true, `{"type":"object","properties":{"limit":{"type":"integer"},"file":{"type":"string"},"class":{"type":"string"}},"required":["file"]}`),
		define("ping", true, `{"type":"object"}`),
		define("import", true, `{"type":"object"}`),
		define("hidden", false, `{"type":"object"}`))...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := reg.WithBridge(registry.Bridge{Enabled: "on"}).Select([]string{"code_execution", "plugin-x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range set.Schemas() {
		if text := string(schema); strings.Contains(text, `"execute_code"`) &&
			(!strings.Contains(text, `count_rows(file, limit=None, **others)`) || !strings.Contains(text, "ping()") || strings.Contains(text, "hidden(") || strings.Contains(text, "import(")) {
			t.Errorf("execute_code is described as %s", text)
		}
	}
	backend, err := sandbox.Open("local", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	box, err := backend.Open(t.Context(), sandbox.Spec{ID: "scripts"})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	s := set.Session(registry.SessionConfig{Sandbox: func(context.Context) (sandbox.Sandbox, error) { return box, nil }})
	defer s.Close()
	code := `
from trajgen_tools import count_rows, ping
import trajgen_tools
print(count_rows("a.csv", limit="7", **{"class": "x"}), ping(), trajgen_tools._call("hidden", {})["error"])
`
	arguments, _ := json.Marshal(map[string]string{"code": code})
	got := s.Call(t.Context(), registry.Request{ID: "c", Name: "execute_code", Arguments: string(arguments)})
	for _, want := range []string{"'file': 'a.csv', 'limit': 7, 'class': 'x'", "{'got': {}}", "not available in execute_code", `"tool_calls_made":2`} {
		if got.Status != episode.CallOK || !strings.Contains(got.Result, want) {
			t.Errorf("the script gave %s, without %s", got.Result, want)
		}
	}
	if trace := s.Trace(); len(trace) != 3 || trace[1].Name != "count-rows" || trace[1].Parent != "c" || len(trace[1].Coerced) != 1 {
		t.Errorf("trace %+v", trace)
	}
}
