package docker_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestRoom fills the disk where the engine's storage has no quotas.
func TestRoom(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		b := sandboxtest.Open(t, name, opts)
		if got := b.Guarantees().Limits["disk"]; got != "soft" {
			t.Fatalf("the limit of disk is %s here", got)
		}
		limits := sandbox.Limits{Disk: 32 << 20}
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "full", Limits: limits})
		r := run(t, sb, "for i in 1 2 3; do head -c 15000000 /dev/zero > f$i; done; exec sleep 30")
		if r.Exit.Signal != 9 || !slices.Contains(r.Exit.Limits, sandbox.LimitDisk) {
			t.Errorf("three files: got %+v, want it killed for want of room", r.Exit)
		}
		run(t, sb, "rm f1 f2")
		if r := run(t, sb, "sleep 3; echo well"); string(r.Stdout.Bytes()) != "well\n" || len(r.Exit.Limits) != 0 {
			t.Errorf("with room again: got %+v, %q", r.Exit, r.Stdout.Bytes())
		}
		greedy := sandboxtest.Box(t, b, sandbox.Spec{ID: "greedy", Limits: limits})
		_, err := sandbox.Run(t.Context(), greedy, sandbox.Command{Args: []string{"/bin/sh", "-c", "for i in 1 2 3 4 5 6; do head -c 15000000 /dev/zero > f$i; done; exec sleep 30"}}, sandbox.RunOptions{})
		if !errors.Is(err, sandbox.ErrGone) || !strings.Contains(err.Error(), "over twice the limit of disk (32 MiB)") {
			t.Errorf("twice the limit: got %v, want the sandbox gone, and why", err)
		}
	})
}
