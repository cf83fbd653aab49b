package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"trajgen/registry"
)

// BenchmarkCall is the dispatch's own cost: the tools do nothing.
func BenchmarkCall(b *testing.B) {
	type args struct {
		Path  string `json:"path"`
		Limit int    `json:"limit,omitempty" default:"5" min:"1"`
	}
	tests := []struct{ name, tool, arguments string }{
		{"empty", "noop", "{}"},
		{"args", "args", `{"path":"a.txt","limit":7}`},
		{"coerced", "args", `{"path":"a.txt","limit":"7"}`},
		{"4KB", "args", `{"path":"` + strings.Repeat("x", 4096) + `"}`},
		{"invalid", "args", `{"limit":"x"}`},
		{"repaired", "args", `{"path":"a.txt",}`},
	}
	for _, others := range []int{0, 1000} {
		tools := []registry.Tool{
			registry.Define(registry.Definition{Name: "noop", Toolset: "test"},
				func(context.Context, *registry.Env, none) (any, error) { return none{}, nil }),
			registry.Define(registry.Definition{Name: "args", Toolset: "test"},
				func(context.Context, *registry.Env, args) (any, error) { return none{}, nil }),
		}
		for i := range others {
			tools = append(tools, member(fmt.Sprint("other_", i), "other"))
		}
		r, err := registry.New(tools...)
		if err != nil {
			b.Fatal(err)
		}
		set, err := r.Select(b.Context(), nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, tt := range tests {
			b.Run(fmt.Sprintf("%s/tools=%d", tt.name, others+2), func(b *testing.B) {
				b.ReportAllocs()
				var s *registry.Session
				n := 0
				for b.Loop() {
					if n%1000 == 0 { // the trace grows with the episode
						s = set.Session(registry.SessionConfig{})
					}
					n++
					s.Call(b.Context(), registry.Request{ID: "call_1", Name: tt.tool, Arguments: tt.arguments})
				}
			})
		}
	}
}

// BenchmarkSelect is what an episode pays for its tools.
func BenchmarkSelect(b *testing.B) {
	r, err := registry.New(member("terminal", "terminal"), member("read_file", "file"), member("todo", "todo"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		set, err := r.Select(b.Context(), []string{"terminal", "file", "web"}, nil)
		if err != nil {
			b.Fatal(err)
		}
		set.Session(registry.SessionConfig{}).Close()
	}
}
