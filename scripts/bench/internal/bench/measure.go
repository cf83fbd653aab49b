package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Measurement is what a process cost, with everything that it started.
type Measurement struct {
	WallS  float64
	CPUMS  float64 // user and system time
	PeakMB float64 // most memory at a time of the runner and its broker together, without what runs in sandboxes; 0 if unknown
}

// measure runs a program to its end, and to that of all that it leaves behind. It reads what the program prints into said, unless
// that is nil.
func (p *player) measure(ctx context.Context, said any, program string, args ...string) (m Measurement, err error) {
	// In files: what the program leaves behind may hold a pipe open.
	out, err := os.Create(filepath.Join(p.dir, "stdout"))
	if err != nil {
		return m, err
	}
	defer out.Close()
	warnings, err := os.Create(filepath.Join(p.dir, "stderr"))
	if err != nil {
		return m, err
	}
	defer warnings.Close()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = out, warnings
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	before, began := cpuMS(syscall.RUSAGE_CHILDREN), time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	peak := watchMemory(cmd.Process.Pid)
	err = cmd.Wait()
	m.WallS, m.PeakMB = time.Since(began).Seconds(), peak()
	if err = errors.Join(err, reapStrays()); err != nil {
		text, _ := os.ReadFile(warnings.Name())
		return m, fmt.Errorf("%v: %w: %s", args, err, bytes.TrimSpace(text))
	}
	m.CPUMS = cpuMS(syscall.RUSAGE_CHILDREN) - before
	if said == nil {
		return m, nil
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, said); err != nil {
		return m, fmt.Errorf("%v said %q: %w", args, text, err)
	}
	return m, nil
}

// reapStrays waits until this process has no children any more, so that they all count.
func reapStrays() error {
	const most = 2 * time.Minute
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

// cpuMS is the CPU time in milliseconds of this process, or of all that it waited for and of what they waited for.
func cpuMS(who int) float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0 // no other who can be wrong
	}
	return milliseconds(time.Duration(usage.Utime.Nano() + usage.Stime.Nano()))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// brokerName is how the broker of native sandboxes calls itself, as no command in a sandbox is a child of the runner.
const brokerName = "trajgen-broker"

// watchMemory samples what a runner and its broker hold. The function that it returns ends that, and returns the most, in MB.
func watchMemory(runner int) (stop func() float64) {
	const sampling = 100 * time.Millisecond // it costs a process with much memory some time
	end, peaks := make(chan struct{}), make(chan float64)
	go func() {
		ticker := time.NewTicker(sampling)
		defer ticker.Stop()
		broker, peak := 0, 0.0
		for n := 0; ; n++ {
			if broker == 0 || n%20 == 0 {
				broker = brokerOf(runner)
			}
			peak = max(peak, pss(runner)+pss(broker))
			select {
			case <-end:
				peaks <- peak
				return
			case <-ticker.C:
			}
		}
	}()
	return func() float64 {
		close(end)
		return <-peaks
	}
}

// brokerOf is the child of that name; 0 without one.
func brokerOf(pid int) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task) // none when the thread has ended
		for child := range strings.FieldsSeq(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			if name, _, _ := bytes.Cut(line, []byte{0}); string(name) == brokerName {
				return int(number(child))
			}
		}
	}
	return 0
}

// pss is the memory of a process in MB, with its share of what it shares; 0 when it is gone.
func pss(pid int) float64 {
	return number(field(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")) / 1024
}
