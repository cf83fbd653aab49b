//go:build linux

package native_test

import (
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

func cgroups(instance string) []string {
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/*/trajgen-" + instance, "/sys/fs/cgroup/*/*/trajgen-" + instance, "/sys/fs/cgroup/*/*/*/trajgen-" + instance} {
		names, _ := filepath.Glob(pattern)
		found = append(found, names...)
	}
	return found
}

func TestKilledRunner(t *testing.T) {
	if left := cgroups(sandboxtest.KilledRunner(t, "native", "171.5", false)); len(left) != 0 {
		t.Errorf("cgroups left: %v", left)
	}
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
	instance := sandboxtest.Instances(stateDir)
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
		return len(cgroups(filepath.Base(instance[0]))) == 0 && len(sandboxtest.Instances(stateDir)) == 0
	})
	// The next one gets a new broker.
	again := sandboxtest.Box(t, b, sandbox.Spec{ID: "orphan"})
	if got := sandboxtest.Sh(t, again, "echo hi"); got != "hi\n" {
		t.Errorf("got %q", got)
	}
	if got := sandboxtest.Instances(stateDir); len(got) != 1 || got[0] == instance[0] {
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
