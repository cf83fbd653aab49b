package local_test

import (
	"fmt"
	"sync"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestKillAllAtOnce holds that callers who share a look at all processes miss none of their own, and kill none of others.
func TestKillAllAtOnce(t *testing.T) {
	b := sandboxtest.Open(t, "local", sandbox.Options{})
	const callers = 6
	seconds := func(n int) string { return fmt.Sprintf("%d.125", 41000+n) }
	daemon := func(sb sandbox.Sandbox, n int) {
		script := "setsid sleep " + seconds(n) + " >/dev/null 2>&1 & sleep 0.01"
		if _, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script}}, sandbox.RunOptions{}); err != nil {
			t.Errorf("start a daemon: %v", err)
		}
	}
	other := sandboxtest.Box(t, b, sandbox.Spec{ID: "other"})
	daemon(other, callers)
	var all sync.WaitGroup
	for n := range callers {
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: fmt.Sprintf("box-%d", n)})
		all.Go(func() {
			for round := range 3 {
				// The first round has nothing to kill, and must not be the last word.
				if round > 0 {
					daemon(sb, n)
				}
				if err := sb.KillAll(t.Context()); err != nil {
					t.Errorf("kill all of %d: %v", n, err)
				}
				if got := sandboxtest.Sleepers(seconds(n)); got != 0 {
					t.Errorf("round %d of %d: %d processes live on", round, n, got)
				}
			}
		})
	}
	all.Wait()
	if got := sandboxtest.Sleepers(seconds(callers)); got != 1 {
		t.Errorf("processes of the sandbox that nobody killed: got %d, want 1", got)
	}
}
