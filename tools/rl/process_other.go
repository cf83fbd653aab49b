//go:build !linux

package rl

import (
	"fmt"
	"syscall"
	"time"
)

// alive says that the training's group of processes is there.
func alive(_ string, pid int) bool {
	if pid <= 0 {
		return false
	}
	_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // if it is a child of ours that has ended
	return syscall.Kill(-pid, 0) == nil
}

// end ends the training's group of processes.
func end(dir string, pid int, grace time.Duration) error {
	if pid <= 0 {
		return nil
	}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	for range 6000 {
		select {
		case <-deadline.C:
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		case <-ticker.C:
		}
		if !alive(dir, pid) {
			return nil
		}
	}
	return fmt.Errorf("processes of the training in %s do not end", dir)
}
