package bench_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/scripts/bench/internal/bench"
	"trajgen/tools"
)

// TestNoopTools shows a model the same as with the real tools.
func TestNoopTools(t *testing.T) {
	real, err := registry.New(tools.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	enabled := []string{"file", "terminal"}
	want, err := real.Select(enabled, nil)
	if err != nil {
		t.Fatal(err)
	}
	idle, err := bench.NoopTools(want.Tools())
	if err != nil {
		t.Fatal(err)
	}
	reg, err := real.With(idle...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := reg.Select(enabled, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Schemas(), got.Schemas()); diff != "" {
		t.Errorf("schemas (-want +got):\n%s", diff)
	}
	session := got.Session(registry.SessionConfig{Now: time.Now})
	defer session.Close()
	call := session.Call(t.Context(), registry.Request{ID: "a", Turn: 3, Name: "terminal", Arguments: `{"command":"cat f.txt"}`})
	if call.Status != episode.CallOK || call.Result != `{"output":"hello\n","exit_code":0,"error":null}` {
		t.Errorf("%s: %s", call.Status, call.Result)
	}
}
