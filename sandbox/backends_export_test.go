package sandbox

import "testing"

// RegisterFor registers a backend until the test ends.
func RegisterFor(t testing.TB, name string, kind Kind) {
	Register(name, kind)
	t.Cleanup(func() { delete(kinds, name) })
}
