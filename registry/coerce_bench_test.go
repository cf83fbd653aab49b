package registry_test

import (
	"context"
	"strings"
	"testing"

	"trajgen/registry"
)

// BenchmarkCoerce is the way of arguments from a model's text to the tool: parsed, mended, validated.
func BenchmarkCoerce(b *testing.B) {
	type edit struct {
		Old string `json:"old"`
		New string `json:"new"`
	}
	type args struct {
		Path  string   `json:"path"`
		Limit int      `json:"limit,omitempty" default:"5" min:"1"`
		Tags  []string `json:"tags,omitempty"`
		Edits []edit   `json:"edits,omitempty"`
	}
	tool := registry.Define(registry.Definition{Name: "args", Toolset: "test"},
		func(context.Context, *registry.Env, args) (any, error) { return nil, nil })
	text := strings.Repeat(`a \"line\"\n`, 400)
	for _, bench := range []struct {
		name, raw string
		problems  int
	}{
		{"clean", `{"path":"a.txt","limit":7,"tags":["a","b"],"edits":[{"old":"x","new":"y"}]}`, 0},
		{"types", `{"path":"a.txt","limit":"7","tags":"[\"a\",\"b\"]","edits":{"old":"x","new":"y"}}`, 0},
		{"syntax", `{"path":"a.txt","limit":7,"tags":["a","b",],}`, 0},
		{"wrong", `{"limit":"x","tags":[1,{}]}`, 4},
		{"5KB", `{"path":"a.txt","edits":[{"old":"` + text + `","new":"` + text + `"}]}`, 0},
	} {
		b.Run("arguments="+bench.name, func(b *testing.B) {
			if _, _, problems := registry.Coerce(tool, bench.raw); problems != bench.problems {
				b.Fatalf("%d problems, want %d", problems, bench.problems)
			}
			b.SetBytes(int64(len(bench.raw)))
			b.ReportAllocs()
			for b.Loop() {
				registry.Coerce(tool, bench.raw)
			}
		})
	}
}
