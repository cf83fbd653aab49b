package docker_test

import (
	"fmt"
	"os/exec"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// Benchmark compares the life of a sandbox with a raw fork and exec.
func Benchmark(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name := range engines {
		b.Run(name, func(b *testing.B) {
			opts := options(b, name)
			backend := sandboxtest.Open(b, name, opts)
			b.Run("exec", func(b *testing.B) {
				sb := sandboxtest.Box(b, backend, sandbox.Spec{ID: "bench"})
				for b.Loop() {
					if _, err := sandbox.Run(b.Context(), sb, sandbox.Command{Args: []string{"/bin/true"}}, sandbox.RunOptions{}); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("open and close", func(b *testing.B) {
				n := 0
				for b.Loop() {
					n++
					sb, err := backend.Open(b.Context(), sandbox.Spec{ID: fmt.Sprintf("bench-%d", n)})
					if err != nil {
						b.Fatal(err)
					}
					if err := sb.Close(); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
