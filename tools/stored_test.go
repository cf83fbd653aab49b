package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"trajgen/registry"
	"trajgen/sandbox"
)

// A search is stored as any other long result; a script gets it whole.
func TestStoredSearch(t *testing.T) {
	e := open(t, "local", "all")
	e.write("a.txt", strings.Repeat("x"+strings.Repeat("y", 150)+"\n", 1000))
	got := e.call("search_files", args{"pattern": "x", "limit": 1000})
	if got.Stored == "" || len(got.Result) > 100_000 || got.ResultBytes < 170_000 {
		t.Errorf("%d of %d bytes, stored = %q", len(got.Result), got.ResultBytes, got.Stored)
	}
	r := e.ok("execute_code", args{"code": "from trajgen_tools import search_files\nprint(len(search_files('x', limit=1000)['matches']))"})
	if r["output"] != "1000" {
		t.Errorf("a script got %v", r["output"])
	}
}

// A result that is too long for a model lies where read_file finds it.
func TestStoredResult(t *testing.T) {
	each(t, func(t *testing.T, e *episodeOf) {
		session := e.session.Toolset().Session(registry.SessionConfig{
			Sandbox: func(context.Context) (sandbox.Sandbox, error) { return e.box, nil }, Limits: registry.ResultLimits{Tools: map[string]int{"terminal": 2000}},
		})
		defer session.Close()
		got := session.Call(t.Context(), registry.Request{ID: "call_1", Name: "terminal", Arguments: `{"command":"seq 1 5000"}`})
		if got.Stored == "" || len(got.Result) > 2000 || !strings.Contains(got.Result, `"exit_code":0`) {
			t.Fatalf("stored = %q: %s", got.Stored, got.Result)
		}
		read := session.Call(t.Context(), registry.Request{ID: "call_2", Turn: 1, Name: "read_file",
			Arguments: fmt.Sprintf(`{"path":%q,"offset":4998,"limit":2}`, got.Stored)})
		if !strings.Contains(read.Result, `4998|4998\n`) || !strings.Contains(read.Result, `4999|4999`) {
			t.Errorf("read_file gave %s", read.Result)
		}
	})
}
