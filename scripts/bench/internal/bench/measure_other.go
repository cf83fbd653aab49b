//go:build unix && !linux

package bench

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

func adoptStrays() error { return nil }

func reapStrays(time.Duration) error { return nil }

func separateMounts(*exec.Cmd) {}

// WithoutCgroups is for Linux alone.
func WithoutCgroups() error { return errors.New("native sandboxes are of Linux alone") }

type account struct{}

func openAccount() (*account, error)       { return &account{}, nil }
func (*account) start(cmd *exec.Cmd) error { return cmd.Start() }
func (*account) cpuMS() float64            { return 0 }
func (*account) close()                    {}

type memory struct{}

func watchMemory(int, time.Duration) *memory { return &memory{} }
func (*memory) stop()                        {}

func (*memory) peak() (peak, mean float64, is string) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err != nil {
		return 0, 0, "maxrss"
	}
	unit := float64(1 << 10)
	if runtime.GOOS == "darwin" {
		unit = 1 << 20
	}
	return float64(usage.Maxrss) / unit, 0, "maxrss"
}
