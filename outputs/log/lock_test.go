package log_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"trajgen/outputs/log"
	"trajgen/outputs/log/disk"
)

// TestLockOfTheDead has a runner killed that was just starting a program: what holds its lock is about to let go of it.
func TestLockOfTheDead(t *testing.T) {
	dir := t.TempDir()
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, "process %d on %s\n", dead.Process.Pid, host)
	heir := exec.Command("sleep", "0.1")
	heir.ExtraFiles = []*os.File{f}
	if err := heir.Start(); err != nil {
		t.Fatal(err)
	}
	defer heir.Wait()
	f.Close()
	held, err := log.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := log.Lock(dir); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("a second writer: %v, want %v", err, disk.ErrLocked)
	}
	if owner, err := log.Writer(dir); err != nil || owner != fmt.Sprintf("process %d on %s", os.Getpid(), host) {
		t.Errorf("Writer = %q, %v, want this process", owner, err)
	}
}
