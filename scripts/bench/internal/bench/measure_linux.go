package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adoptStrays makes this process the parent of what the measured one leaves behind, so that it counts, too.
func adoptStrays() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt what processes leave behind: %w", err)
	}
	return nil
}

// reapStrays waits until there are no children any more.
func reapStrays(most time.Duration) error {
	for end := time.Now().Add(most); ; {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return nil
		case errors.Is(err, syscall.EINTR) || pid > 0:
			continue
		case err != nil:
			return fmt.Errorf("wait for what was left behind: %w", err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes still run %s after the end of what started them", most)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// separateMounts gives the command a mount namespace of its own.
func separateMounts(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

// WithoutCgroups takes the cgroups out of sight of this process, which must have mounts of its own, so that its sandboxes
// have no limits through them.
func WithoutCgroups() error {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	parents, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid()))
	if err != nil {
		return err
	}
	if own == parents {
		return errors.New("sandboxes without cgroups take a mount namespace of their own: start this as root through bench measure --private-mounts")
	}
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(info)) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if len(fields) < 5 || !strings.HasPrefix(after, "cgroup") {
			continue
		}
		if err := unix.Unmount(fields[4], unix.MNT_DETACH); err != nil {
			return fmt.Errorf("take %s out of sight: %w", fields[4], err)
		}
	}
	return nil
}

// account is a cgroup that counts CPU time. Sandboxes leave those hierarchies that have the controllers which limit them,
// so one with this controller alone is taken, or none.
type account struct{ dir string }

const cpuAccounts = "/sys/fs/cgroup/cpuacct"

func openAccount() (*account, error) {
	if real, err := filepath.EvalSymlinks(cpuAccounts); err != nil || real != cpuAccounts {
		return &account{}, nil // together with cpu, or version 2
	}
	dir := filepath.Join(cpuAccounts, "trajgen-bench-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return &account{}, nil // not ours to use
	}
	return &account{dir}, nil
}

// start starts the command within. This process itself goes in for a moment: in version 1 children are born where their
// parent is.
func (a *account) start(cmd *exec.Cmd) error {
	if a.dir == "" {
		return cmd.Start()
	}
	self := []byte(strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(filepath.Join(a.dir, "cgroup.procs"), self, 0o644); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), os.WriteFile(filepath.Join(cpuAccounts, "cgroup.procs"), self, 0o644))
}

func (a *account) cpuMS() float64 {
	if a.dir == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(a.dir, "cpuacct.usage"))
	if err != nil {
		return 0
	}
	ns, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	return ns / 1e6
}

func (a *account) close() {
	if a.dir != "" {
		_ = os.Remove(a.dir) // empty by now, or another process's to clear
	}
}

// memory samples what the runner and its broker hold.
type memory struct {
	runner, broker int
	end            chan struct{}
	wait           sync.WaitGroup
	samples        []float64 // MB
}

// brokerName is how the broker of native sandboxes calls itself, as no command in a sandbox is a child of the runner.
const brokerName = "trajgen-broker"

func watchMemory(pid int, every time.Duration) *memory {
	m := &memory{runner: pid, end: make(chan struct{})}
	m.wait.Go(func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for n := 0; ; n++ {
			if m.broker == 0 || n%20 == 0 {
				m.broker = brokerOf(pid)
			}
			if mb := pss(m.runner) + pss(m.broker); mb > 0 {
				m.samples = append(m.samples, mb)
			}
			select {
			case <-m.end:
				return
			case <-ticker.C:
			}
		}
	})
	return m
}

func (m *memory) stop() {
	close(m.end)
	m.wait.Wait()
}

func (m *memory) peak() (peak, mean float64, is string) {
	late := m.samples[len(m.samples)/2:]
	for i, mb := range m.samples {
		peak = max(peak, mb)
		if i >= len(m.samples)/2 {
			mean += mb / float64(len(late))
		}
	}
	return peak, mean, "pss"
}

// brokerOf is the child of that name; 0 without one.
func brokerOf(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			line, err := os.ReadFile("/proc/" + child + "/cmdline")
			name, _, _ := bytes.Cut(line, []byte{0})
			if err == nil && string(name) == brokerName {
				pid, _ := strconv.Atoi(child)
				return pid
			}
		}
	}
	return 0
}

// pss is the memory of a process in MB, with its share of what it shares; 0 when it is gone.
func pss(pid int) float64 {
	if pid == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "Pss:" {
			kb, _ := strconv.ParseFloat(fields[1], 64)
			return kb / 1024
		}
	}
	return 0
}
