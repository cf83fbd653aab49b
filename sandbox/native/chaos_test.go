//go:build linux

package native_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// busyName is the name under which this test starts itself as a runner that never stops opening, forking and closing.
const busyName = "sandbox-test-busy"

func init() { sandboxtest.Role(busyName, busy) }

// busy does everything that leaves something behind when it is cut short. Its processes sleep for a number of seconds by
// which they are known.
func busy(args []string) error {
	b, err := sandbox.Open("native", sandbox.Options{StateDir: args[0], Pool: 1})
	if err != nil {
		return err
	}
	ctx := context.Background()
	life := func(id string) error {
		sb, err := b.Open(ctx, sandbox.Spec{ID: id})
		if err != nil {
			return err
		}
		sleep := "sleep " + args[1]
		if _, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sh", "-c", "echo x > f; (setsid " + sleep + " &) >/dev/null 2>&1; " + sleep + " >/dev/null 2>&1 &"}}, sandbox.RunOptions{}); err != nil {
			return err
		}
		if err := sb.KillAll(ctx); err != nil {
			return err
		}
		s, err := sb.(sandbox.Snapshotter).Snapshot(ctx)
		if err != nil {
			return err
		}
		fork, err := b.Open(ctx, sandbox.Spec{ID: id + "-fork", From: s})
		if err != nil {
			return err
		}
		if _, err := fork.Start(ctx, sandbox.Command{Args: []string{"sleep", args[1]}}); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
		if err := sb.Close(); err != nil {
			return err
		}
		return fork.Close()
	}
	failed := make(chan error, 3)
	for worker := range 3 {
		go func() {
			for i := 0; ; i++ {
				if err := life(fmt.Sprintf("busy-%d-%d", worker, i)); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// openingName is the name under which this test starts itself as a runner that opens many sandboxes at once.
const openingName = "sandbox-test-opening"

func init() { sandboxtest.Role(openingName, opening) }

func opening(args []string) error {
	b, err := sandbox.Open("native", sandbox.Options{StateDir: args[0]})
	if err != nil {
		return err
	}
	failed := make(chan error, 32)
	for worker := range cap(failed) {
		go func() {
			for i := 0; ; i++ {
				sb, err := b.Open(context.Background(), sandbox.Spec{ID: fmt.Sprintf("opening-%d-%d", worker, i)})
				if err == nil {
					err = sb.Close()
				}
				if err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// TestKilledWhileOpening kills brokers that start many guests at once, and then their runners. A guest that has not begun yet must
// not live on: it would hold the instance, which looks alive then.
func TestKilledWhileOpening(t *testing.T) {
	sandboxtest.Open(t, "native", sandbox.Options{})
	random := rand.New(rand.NewPCG(4, 4))
	stateDir := t.TempDir()
	for range 20 {
		c := sandboxtest.Again(openingName, stateDir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		sandboxtest.Eventually(t, 30*time.Second, "an instance", func() bool { return len(sandboxtest.Instances(stateDir)) > 0 })
		time.Sleep(time.Duration(random.IntN(100_000)) * time.Microsecond)
		for _, child := range children(c.Process.Pid) {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		sandboxtest.Eventually(t, 30*time.Second, "no instance left", func() bool {
			_, err := sandbox.Sweep(stateDir)
			return err == nil && len(sandboxtest.Instances(stateDir)) == 0
		})
	}
}

// TestKilledAtRandom kills runners with kill -9 at random moments, now and then their brokers first, and holds that nothing
// is left after the next start. CHAOS_KILLS says how many times.
func TestKilledAtRandom(t *testing.T) {
	kills := 25
	if text := os.Getenv("CHAOS_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	sandboxtest.Open(t, "native", sandbox.Options{})
	random := rand.New(rand.NewPCG(3, uint64(kills)))
	stateDir := t.TempDir()
	seen := map[string]bool{}
	var slowest time.Duration
	for i := range kills {
		seconds := fmt.Sprintf("%d.25", 20000+i)
		c := sandboxtest.Again(busyName, stateDir, seconds)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(120_000)) * time.Microsecond)
		for _, path := range sandboxtest.Instances(stateDir) {
			seen[filepath.Base(path)] = true
		}
		if random.IntN(4) == 0 {
			for _, child := range children(c.Process.Pid) {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_ = c.Wait()
		sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers(seconds) == 0 })
		slowest = max(slowest, time.Since(began))
	}
	// The brokers that were left to themselves clean up; the rest is the next start's.
	b, err := sandbox.Open("native", sandbox.Options{StateDir: stateDir})
	if err != nil {
		t.Fatal(err)
	}
	mine := sandboxtest.Instances(stateDir)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "no state left", func() bool { return len(sandboxtest.Instances(stateDir)) == 0 })
	if len(mine) > 4 {
		t.Errorf("%d instances were left at the next start", len(mine))
	}
	if len(seen) == 0 {
		t.Error("every runner was killed before it held anything")
	}
	for name := range seen {
		if left := cgroups(name); len(left) > 0 {
			t.Errorf("cgroups are left: %v", left)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), stateDir) {
		t.Errorf("mounts are left: %s, %v", mounts, err)
	}
	t.Logf("%d kills; the last process was gone after %v at most; %d had begun to hold something", kills, slowest, len(seen))
}
