package sandbox_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// caps are those of all backends in this build.
var caps sandboxtest.Caps

// TestContract asks every backend everything.
func TestContract(t *testing.T) {
	for _, name := range sandbox.Names() {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return open(t, name) }, caps)
		})
	}
}

func open(t testing.TB, name string) sandbox.Backend {
	t.Helper()
	b, err := sandbox.Open(name, sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, name, err)
	return b
}
