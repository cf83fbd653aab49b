package sandboxtest

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"trajgen/sandbox"
)

// Open opens a backend that is closed with the test, in a state directory of its own unless opts has one. It skips the test
// where the backend cannot be opened, see Require.
func Open(t testing.TB, name string, opts sandbox.Options) sandbox.Backend {
	t.Helper()
	if opts.StateDir == "" {
		opts.StateDir = t.TempDir()
	}
	b, err := sandbox.Open(name, opts)
	Require(t, name, err)
	CloseLater(t, b)
	return b
}

// Box opens a sandbox that is closed with the test.
func Box(t testing.TB, b sandbox.Backend, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	sb, err := b.Open(t.Context(), spec)
	if err != nil {
		t.Fatalf("open sandbox %s: %v", spec.ID, err)
	}
	CloseLater(t, sb)
	return sb
}

// CloseLater closes something with the test, which fails when that does.
func CloseLater(t testing.TB, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close %T: %v", c, err)
		}
	})
}

// Sh runs a script that must succeed within 20 seconds, and returns what it printed.
func Sh(t testing.TB, sb sandbox.Sandbox, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script}}, sandbox.RunOptions{})
	if err != nil {
		t.Fatalf("script %q: %v", script, err)
	}
	if r.Exit.Code != 0 || r.TimedOut {
		t.Fatalf("script %q: exit %+v, timed out %v, stdout %q, stderr %q", script, r.Exit, r.TimedOut, r.Stdout.Bytes(), r.Stderr.Bytes())
	}
	return string(r.Stdout.Bytes())
}

// Eventually waits until ok returns true, and returns how long that took.
func Eventually(t testing.TB, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Fatalf("after %v: not %s", limit, what)
		}
	}
}

// OpenDir returns a directory that every user can reach, unlike t.TempDir.
func OpenDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
