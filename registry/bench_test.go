package registry_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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
		{"repaired/4KB", "args", `{"path":"` + strings.Repeat(`say "a" `, 512) + `","limit":7}`},
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
		set, err := r.Select(nil, nil)
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

// BenchmarkDispatch is a tool that does nothing, in episodes that run side by side: the registry's own cost, which must
// not grow with the number of tools or of episodes.
func BenchmarkDispatch(b *testing.B) {
	for _, tools := range []int{10, 100, 1000} {
		all := []registry.Tool{registry.Define(registry.Definition{Name: "noop", Toolset: "test"},
			func(context.Context, *registry.Env, none) (any, error) { return none{}, nil })}
		for i := range tools - 1 {
			all = append(all, member(fmt.Sprint("other_", i), "other"))
		}
		r, err := registry.New(all...)
		if err != nil {
			b.Fatal(err)
		}
		set, err := r.Select(nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		for _, goroutines := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("tools=%d/goroutines=%d", tools, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				b.ResetTimer() // b.Loop is for one goroutine
				var all sync.WaitGroup
				var left atomic.Int64
				left.Store(int64(b.N))
				for range goroutines {
					all.Go(func() {
						for {
							s := set.Session(registry.SessionConfig{})
							for range 100 { // the calls of an episode
								if left.Add(-1) < 0 {
									return
								}
								s.Call(b.Context(), registry.Request{ID: "call_1", Name: "noop", Arguments: "{}"})
							}
							s.Close()
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// BenchmarkResult is the way of a result to the message and the trace, with a secret to look for and the guardrails on:
// it should cost little more than encoding it.
func BenchmarkResult(b *testing.B) {
	secrets := registry.NewSecrets(map[string]string{"API_KEY": "sk-proj-0123456789abcdef/+"})
	for _, size := range []int{1 << 10, 10 << 10, 80 << 10} {
		text := strings.Repeat("a line of what a command prints\n", size/32)
		r, err := registry.New(registry.Define(registry.Definition{Name: "print", Toolset: "test"},
			func(context.Context, *registry.Env, none) (any, error) { return map[string]string{"output": text}, nil }))
		if err != nil {
			b.Fatal(err)
		}
		set, err := r.Select(nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("size=%dKB", size>>10), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				s := set.Session(registry.SessionConfig{Secrets: secrets, Guardrails: registry.NewGuardrails()})
				s.Call(b.Context(), registry.Request{ID: "call_1", Name: "print", Arguments: "{}"})
				s.Close()
			}
		})
	}
}

// The bound is the project's own; the figure is about half of it.
func TestCallAllocations(t *testing.T) {
	s := session(t, registry.SessionConfig{}, tool("noop", func(context.Context, *registry.Env) (any, error) { return none{}, nil }))
	if n := testing.AllocsPerRun(1000, func() {
		s.Call(t.Context(), registry.Request{ID: "call_1", Name: "noop", Arguments: "{}"})
	}); n > 14 {
		t.Errorf("a call makes %v allocations", n)
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
		set, err := r.Select([]string{"terminal", "file", "web"}, nil)
		if err != nil {
			b.Fatal(err)
		}
		set.Session(registry.SessionConfig{}).Close()
	}
}
