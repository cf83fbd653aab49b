//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
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

// runnerName is the name under which this test starts itself as a runner that is going to be killed.
const runnerName = "sandbox-test-runner"

func init() { sandboxtest.Role(runnerName, runner) }

// runner holds sandboxes until its death.
func runner(args []string) error {
	backend, stateDir, seconds := args[0], args[1], args[2]
	count, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	opts := sandbox.Options{StateDir: stateDir}
	if backend == "landlock" {
		backend, opts = "native", sandbox.WithLandlock(opts)
	}
	b, err := sandbox.Open(backend, opts)
	if err != nil {
		return err
	}
	return sandboxtest.Hold(b, count, seconds)
}

func cgroups(instance string) []string {
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/*/trajgen-" + instance, "/sys/fs/cgroup/*/*/trajgen-" + instance, "/sys/fs/cgroup/*/*/*/trajgen-" + instance} {
		names, _ := filepath.Glob(pattern)
		found = append(found, names...)
	}
	return found
}

func instances(stateDir string) []string {
	names, _ := filepath.Glob(filepath.Join(stateDir, "*-*"))
	return names
}

func TestKilledRunner(t *testing.T) {
	for i, backend := range sandbox.Names() {
		t.Run(backend, func(t *testing.T) {
			sandboxtest.Open(t, backend, sandbox.Options{})
			stateDir, seconds, count := t.TempDir(), fmt.Sprintf("17%d.5", i), 20
			c := sandboxtest.Runner(t, runnerName, backend, stateDir, seconds, strconv.Itoa(count))
			if live, err := sandbox.List(stateDir); err != nil || len(live) != count || live[0].Owner != c.Process.Pid || live[0].Backend != backend || time.Since(live[0].Started) > time.Minute {
				t.Errorf("list: got %d, %v", len(live), err)
			}
			sandboxtest.Eventually(t, 10*time.Second, "three sleepers in each", func() bool { return sandboxtest.Sleepers(seconds) == 3*count })
			if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 0 {
				t.Errorf("sweep of the living: got %v, %v", swept, err)
			}
			instance := instances(stateDir)
			sandboxtest.Kill(t, c)
			if backend == "local" { // nobody watches over it
				if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1 {
					t.Errorf("sweep: got %v, %v", swept, err)
				}
			}
			sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers(seconds) == 0 })
			sandboxtest.Eventually(t, 30*time.Second, "no state left", func() bool { return len(instances(stateDir)) == 0 })
			if left := cgroups(filepath.Base(instance[0])); len(left) != 0 {
				t.Errorf("cgroups left: %v", left)
			}
		})
	}
}

// hidingName is the name under which this test starts itself as a runner whose sandbox holds daemons that hide.
const hidingName = "sandbox-test-hiding"

func init() { sandboxtest.Role(hidingName, hiding) }

// hiding leaves daemons behind that have lost their environment, or changed the mark in it.
func hiding(args []string) error {
	b, err := sandbox.Open("local", sandbox.Options{StateDir: args[0]})
	if err != nil {
		return err
	}
	sb, err := b.Open(context.Background(), sandbox.Spec{ID: "hiding"})
	if err != nil {
		return err
	}
	const marked = "until grep -q 'Max resident set *[0-9]' /proc/$$/limits; do sleep 0.01; done; "
	script := "env -i setsid sleep " + args[1] + " & TRAJGEN_SANDBOX=/elsewhere setsid sleep " + args[1] + " &"
	_, err = sandbox.Run(context.Background(), sb, sandbox.Command{Args: []string{"sh", "-c", marked + "(" + script + ") >/dev/null 2>&1"}}, sandbox.RunOptions{})
	return errors.Join(err, sandboxtest.Ready())
}

// What hid from its own runner is found by the sweep, also through a state directory that is a link.
func TestSweepFindsWhatHides(t *testing.T) {
	stateDir, seconds := filepath.Join(t.TempDir(), "link"), "171.25"
	if err := os.Symlink(t.TempDir(), stateDir); err != nil {
		t.Fatal(err)
	}
	c := sandboxtest.Runner(t, hidingName, stateDir, seconds)
	sandboxtest.Eventually(t, 10*time.Second, "two sleepers", func() bool { return sandboxtest.Sleepers(seconds) == 2 })
	sandboxtest.Kill(t, c)
	if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1 {
		t.Errorf("sweep: got %v, %v", swept, err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "no sleeper", func() bool { return sandboxtest.Sleepers(seconds) == 0 })
}

// children returns the processes whose parent is pid.
func children(pid int) []int {
	var found []int
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			found = append(found, child)
		}
	}
	return found
}

func brokerOf(t *testing.T, pid int) int {
	t.Helper()
	for _, child := range children(pid) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); strings.HasPrefix(string(line), "trajgen-broker") {
			return child
		}
	}
	t.Fatal("no broker")
	return 0
}

func TestKilledBroker(t *testing.T) {
	stateDir := t.TempDir()
	b := sandboxtest.Open(t, "native", sandbox.Options{StateDir: stateDir})
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "orphan"})
	const seconds = "179.5"
	p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sh", "-c", "setsid sleep " + seconds + " & sleep " + seconds}})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "two sleepers", func() bool { return sandboxtest.Sleepers(seconds) == 2 })
	instance := instances(stateDir)
	if err := syscall.Kill(brokerOf(t, os.Getpid()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers(seconds) == 0 })
	if _, err := p.Wait(t.Context()); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("wait: got %v, want ErrGone", err)
	}
	if _, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"true"}}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("start: got %v, want ErrGone", err)
	}
	if err := sb.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	// What it left is removed at once, also if nothing is opened any more.
	sandboxtest.Eventually(t, 30*time.Second, "no cgroups and no state left", func() bool {
		return len(cgroups(filepath.Base(instance[0]))) == 0 && len(instances(stateDir)) == 0
	})
	// The next one gets a new broker.
	again := sandboxtest.Box(t, b, sandbox.Spec{ID: "orphan"})
	if got := sandboxtest.Sh(t, again, "echo hi"); got != "hi\n" {
		t.Errorf("got %q", got)
	}
	if got := instances(stateDir); len(got) != 1 || got[0] == instance[0] {
		t.Errorf("state: got %v", got)
	}
}

// TestOrdinaryUser does so again as a user without any rights.
func TestOrdinaryUser(t *testing.T) {
	out := sandboxtest.AsOrdinaryUser(t, "-test.run=^TestKilledBroker$", "-test.v")
	if !strings.Contains(out, "--- PASS: TestKilledBroker") {
		t.Errorf("it was not asked:\n%s", out)
	}
}
