//go:build linux

package native_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

func pooled(t testing.TB, size int) (sandbox.Backend, string) {
	t.Helper()
	dir := t.TempDir()
	return sandboxtest.Open(t, "native", sandbox.Options{StateDir: dir, Pool: size}), dir
}

// ahead waits until so many sandboxes have been made ahead of demand.
func ahead(t testing.TB, dir string, want int) {
	t.Helper()
	sandboxtest.Eventually(t, 20*time.Second, fmt.Sprintf("%d sandboxes ready", want), func() bool {
		live, err := sandbox.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range live {
			if strings.HasPrefix(s.ID, "ahead-") {
				n++
			}
		}
		return n == want
	})
}

// look tells what a sandbox was given.
func look(t testing.TB, sb sandbox.Sandbox) string {
	t.Helper()
	return sandboxtest.Sh(t, sb, `ls -A; pwd; echo "$WHO"; ls /sys/class/net 2>/dev/null; ulimit -n; touch used`)
}

// TestPool holds that a sandbox that was made ahead is like any other, and is handed out once.
func TestPool(t *testing.T) {
	b, dir := pooled(t, 2)
	var first string
	for i := range 6 {
		id := fmt.Sprintf("box-%d", i)
		sb, err := b.Open(t.Context(), sandbox.Spec{ID: id, Env: map[string]string{"WHO": "me"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := look(t, sb); i == 0 {
			first = got
		} else if got != first {
			t.Errorf("%s: got %q, want %q as in the first", id, got, first)
		}
		if other, err := b.Open(t.Context(), sandbox.Spec{ID: id}); err == nil {
			t.Errorf("%s was opened twice", id)
			_ = other.Close()
		}
		ahead(t, dir, 2)
		// Nobody waits for one that was made ahead to be listed under its new name.
		sandboxtest.Eventually(t, 30*time.Second, id+" listed, and two that are ready", func() bool {
			live, err := sandbox.List(dir)
			return err == nil && len(live) == 3 && slices.ContainsFunc(live, func(s sandbox.Live) bool { return s.ID == id })
		})
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPoolKinds holds that what is handed out is what was asked for, and that kinds nobody asks for any more are ended.
func TestPoolKinds(t *testing.T) {
	b, dir := pooled(t, 1)
	for round := range 2 {
		for i := range 6 {
			dir := fmt.Sprintf("/srv/w%d", i)
			sb, err := b.Open(t.Context(), sandbox.Spec{ID: fmt.Sprintf("box-%d-%d", round, i), Workdir: dir, Limits: sandbox.Limits{Files: 100 + i}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := look(t, sb), fmt.Sprintf("%s\n\n%d\n", dir, 100+i); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	ahead(t, dir, 4)
}

// TestPoolAtOnce asks from many sides, and closes the backend while sandboxes are being made.
func TestPoolAtOnce(t *testing.T) {
	b, _ := pooled(t, 4)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			sb, err := b.Open(t.Context(), sandbox.Spec{ID: fmt.Sprintf("box-%d", i)})
			if err != nil {
				t.Error(err)
				return
			}
			if got := look(t, sb); !strings.HasPrefix(got, "/workspace\n") {
				t.Errorf("got %q", got)
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
