package tools_test

import (
	"strings"
	"testing"

	"trajgen/registry"
	"trajgen/tools"
)

// BenchmarkSelect is what an episode pays for its tools: those of the bundled toolsets that were chosen before.
func BenchmarkSelect(b *testing.B) {
	reg, err := registry.New(tools.Builtin()...)
	if err != nil {
		b.Fatal(err)
	}
	for _, toolsets := range [][]string{{"terminal", "file"}, {"all"}} {
		b.Run("toolsets="+strings.Join(toolsets, "+"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set, err := reg.Select(toolsets, nil)
				if err != nil {
					b.Fatal(err)
				}
				set.Session(registry.SessionConfig{}).Close()
			}
		})
	}
}
