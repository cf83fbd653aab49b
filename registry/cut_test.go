package registry_test

import (
	"context"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// TestCutArguments does not mend what is known to be not whole, however little is missing.
func TestCutArguments(t *testing.T) {
	ran := 0
	s := session(t, registry.SessionConfig{}, tool("x", func(context.Context, *registry.Env) (any, error) { ran++; return "ok", nil }))
	for _, text := range []string{`{"a":"b"`, `{}`, ``, "<parameter=a>\n{}"} {
		got := s.Call(t.Context(), registry.Request{ID: "1", Name: "x", Arguments: text, Cut: true})
		if ran > 0 || got.Status != episode.CallInvalidArguments || got.RawArguments != text || !strings.Contains(got.Result, "ends too early") {
			t.Errorf("call of %q = %+v", text, got)
		}
	}
}
