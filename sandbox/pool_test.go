//go:build linux

package sandbox_test

import (
	"fmt"
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
	b, err := sandbox.Open("native", sandbox.Options{StateDir: dir, Pool: size})
	sandboxtest.Require(t, "native", err)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, dir
}

// ahead waits until so many sandboxes have been made ahead of demand.
func ahead(t testing.TB, dir string, want int) {
	t.Helper()
	var n int
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		live, err := sandbox.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		n = 0
		for _, s := range live {
			if strings.HasPrefix(s.ID, "ahead-") {
				n++
			}
		}
		if n == want {
			return
		}
	}
	t.Fatalf("%d sandboxes are ready, want %d", n, want)
}

// look tells what a sandbox was given.
func look(t testing.TB, sb sandbox.Sandbox) string {
	t.Helper()
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"sh", "-c", `ls -A; pwd; echo "$WHO"; ls /sys/class/net 2>/dev/null; ulimit -n; touch used`}}, sandbox.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Stdout.Bytes())
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
		live, err := sandbox.List(dir)
		if err != nil || len(live) != 3 {
			t.Errorf("live: got %+v, %v, want %s and two that are ready", live, err, id)
		}
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
