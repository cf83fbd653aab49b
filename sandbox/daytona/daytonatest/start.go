package daytonatest

import (
	"fmt"
	"testing"

	"trajgen/sandbox"
)

// Start starts a server whose machines are native sandboxes, until the test ends, and returns the options of its user.
func Start(t testing.TB) (*Server, sandbox.Options, error) {
	t.Helper()
	machines, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		return nil, sandbox.Options{}, fmt.Errorf("machines for the server: %w", err)
	}
	t.Cleanup(func() {
		if err := machines.Close(); err != nil {
			t.Errorf("close the machines: %v", err)
		}
	})
	s, err := New(machines)
	if err != nil {
		return nil, sandbox.Options{}, err
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the server: %v", err)
		}
	})
	return s, sandbox.Options{StateDir: t.TempDir(), Settings: s.Settings()}, nil
}
