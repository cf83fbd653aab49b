package native_test

import (
	"fmt"
	"testing"

	"trajgen/sandbox"
)

// BenchmarkNativeOpen is the opening of a sandbox of which none lies ready.
func BenchmarkNativeOpen(b *testing.B) {
	benchLives(b, func(b *testing.B, backend sandbox.Backend, spec sandbox.Spec) {
		sb, err := backend.Open(b.Context(), spec)
		b.StopTimer()
		if err != nil {
			b.Fatal(err)
		}
		if err := sb.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	})
}

// BenchmarkNativeClose is the end of a sandbox in which a command has run.
func BenchmarkNativeClose(b *testing.B) {
	benchLives(b, func(b *testing.B, backend sandbox.Backend, spec sandbox.Spec) {
		b.StopTimer()
		sb, err := backend.Open(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		if err := execTrue(b, sb); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := sb.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

func benchLives(b *testing.B, life func(b *testing.B, backend sandbox.Backend, spec sandbox.Spec)) {
	backend := benchBackend(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		life(b, backend, sandbox.Spec{ID: fmt.Sprintf("life-%d", n)})
	}
}
