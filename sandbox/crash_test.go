//go:build linux

package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

func init() { roles[runnerName] = runner }

// runner opens sandboxes with daemons in them, says so and waits for its death.
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
	ctx, script := context.Background(), "setsid sleep "+seconds+" >/dev/null 2>&1 & sleep "+seconds+" >/dev/null 2>&1 & (sleep "+seconds+" &) >/dev/null 2>&1"
	for i := range count {
		sb, err := b.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("crash-%d", i)})
		if err != nil {
			return err
		}
		if _, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sh", "-c", script}}, sandbox.RunOptions{}); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	select {}
}

func startRunner(t testing.TB, backend, stateDir, seconds string, count int) *exec.Cmd {
	t.Helper()
	c := exec.Command("/proc/self/exe", backend, stateDir, seconds, strconv.Itoa(count))
	c.Args[0] = runnerName
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the runner said %q, %v", line, err)
	}
	return c
}

// sleepers are processes of the machine that sleep for a number of seconds.
func sleepers(seconds string) int {
	n := 0
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(line), "sleep\x00"+seconds+"\x00") {
			n++
		}
	}
	return n
}

func waitFor(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", limit, what)
		}
	}
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
			open(t, backend).Close()
			stateDir, seconds, count := t.TempDir(), fmt.Sprintf("17%d.5", i), 20
			c := startRunner(t, backend, stateDir, seconds, count)
			if live, err := sandbox.List(stateDir); err != nil || len(live) != count || live[0].Owner != c.Process.Pid || live[0].Backend != backend || time.Since(live[0].Started) > time.Minute {
				t.Errorf("list: got %d, %v", len(live), err)
			}
			waitFor(t, 10*time.Second, "three sleepers in each", func() bool { return sleepers(seconds) == 3*count })
			if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 0 {
				t.Errorf("sweep of the living: got %v, %v", swept, err)
			}
			instance := instances(stateDir)
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			if backend == "local" { // nobody watches over it
				if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1 {
					t.Errorf("sweep: got %v, %v", swept, err)
				}
			}
			waitFor(t, 2*time.Second, "all processes gone", func() bool { return sleepers(seconds) == 0 })
			waitFor(t, 5*time.Second, "no state left", func() bool { return len(instances(stateDir)) == 0 })
			if left := cgroups(filepath.Base(instance[0])); len(left) != 0 {
				t.Errorf("cgroups left: %v", left)
			}
		})
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
	b, err := sandbox.Open("native", sandbox.Options{StateDir: stateDir})
	sandboxtest.Require(t, "native", err)
	defer b.Close()
	sb, err := b.Open(t.Context(), sandbox.Spec{ID: "orphan"})
	if err != nil {
		t.Fatal(err)
	}
	const seconds = "179.5"
	p, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sh", "-c", "setsid sleep " + seconds + " & sleep " + seconds}})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, 5*time.Second, "two sleepers", func() bool { return sleepers(seconds) == 2 })
	instance := instances(stateDir)
	if err := syscall.Kill(brokerOf(t, os.Getpid()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, 2*time.Second, "all processes gone", func() bool { return sleepers(seconds) == 0 })
	if _, err := p.Wait(t.Context()); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("wait: got %v, want ErrGone", err)
	}
	if _, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"true"}}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("start: got %v, want ErrGone", err)
	}
	if err := sb.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	// The next one gets a new broker, and what the old one left is removed.
	again, err := b.Open(t.Context(), sandbox.Spec{ID: "orphan"})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := sandbox.Run(t.Context(), again, sandbox.Command{Args: []string{"echo", "hi"}}, sandbox.RunOptions{}); err != nil || string(r.Stdout.Bytes()) != "hi\n" {
		t.Errorf("got %q, %v", r.Stdout.Bytes(), err)
	}
	if left := cgroups(filepath.Base(instance[0])); len(left) != 0 {
		t.Errorf("cgroups left: %v", left)
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
