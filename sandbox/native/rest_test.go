//go:build linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestSnapshotRests holds that a sandbox has no guest from its snapshot until it is asked something, and that whoever asks first
// and gives up does not end it.
func TestSnapshotRests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	backend := sandboxtest.Open(t, "native", sandbox.Options{StateDir: dir})
	sb := sandboxtest.Box(t, backend, sandbox.Spec{ID: "rests"})
	pid := func() int {
		t.Helper()
		live, err := sandbox.List(dir)
		if err != nil || len(live) != 1 {
			t.Fatalf("List = %v, %v, want one sandbox", live, err)
		}
		return live[0].PID
	}
	first := pid()
	snapshot, err := sb.(sandbox.Snapshotter).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.CloseLater(t, snapshot)
	if err := sb.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := pid(); got != 0 || syscall.Kill(first, 0) == nil {
		t.Fatalf("guest %d after the snapshot, %d before it, want none", got, first)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // no guest starts in that time
	defer cancel()
	if _, err := sb.Files().Stat(ctx, "/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stat = %v, want the cause of its context", err)
	}
	if _, err := sb.Files().Stat(t.Context(), "/"); err != nil {
		t.Error(err)
	}
	if got := pid(); got == 0 || got == first {
		t.Errorf("guest %d after a request, want a new one", got)
	}
}

// TestSnapshotAtOnce takes snapshots of sandboxes of the pool before the broker lists them under their names.
func TestSnapshotAtOnce(t *testing.T) {
	t.Parallel()
	const size = 8
	backend := sandboxtest.Open(t, "native", sandbox.Options{StateDir: t.TempDir(), Pool: size})
	for round := range 10 {
		var all sync.WaitGroup
		for i := range size {
			all.Go(func() {
				sb, err := backend.Open(t.Context(), sandbox.Spec{ID: fmt.Sprintf("at-once-%d-%d", round, i)})
				if err != nil {
					t.Error(err)
					return
				}
				snapshot, err := sb.(sandbox.Snapshotter).Snapshot(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(snapshot.Close(), sb.Close()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
