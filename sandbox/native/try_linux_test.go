package native_test

import (
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
)

// try opens native in a way that tests alone ask for.
func try(t testing.TB, trial native.Trial, stateDir string) sandbox.Backend {
	t.Helper()
	b, err := native.Try(trial, sandbox.Options{StateDir: stateDir})
	sandboxtest.Require(t, "native", err)
	sandboxtest.CloseLater(t, b)
	return b
}
