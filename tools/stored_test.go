package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"trajgen/registry"
	"trajgen/sandbox"
)

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
