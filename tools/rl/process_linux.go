package rl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tree finds the processes of a training: those that have its directory in their environment, and all that descend from them or
// are in their sessions. A runner that did not start them finds them, too.
func tree(dir string) []int {
	mark := []byte("\x00TRAJGEN_RL_TRAINING=" + dir + "\x00")
	names, _ := filepath.Glob("/proc/[0-9]*") // a fixed pattern is never bad
	parents, sessions := map[int]int{}, map[int]int{}
	in := map[int]bool{}
	for _, each := range names {
		pid, err := strconv.Atoi(filepath.Base(each))
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(each + "/stat")
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, group, session
		if err != nil || len(fields) < 4 || fields[0] == "Z" {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
		sessions[pid], _ = strconv.Atoi(fields[3])
		environ, _ := os.ReadFile(each + "/environ")
		if bytes.Contains(append([]byte{0}, environ...), mark) {
			in[pid] = true
		}
	}
	led := map[int]bool{}
	for pid := range in {
		led[sessions[pid]] = led[sessions[pid]] || in[sessions[pid]] // a session of its own
	}
	for grown := true; grown; {
		grown = false
		for pid := range parents {
			if !in[pid] && (in[parents[pid]] || led[sessions[pid]]) {
				in[pid], grown = true, true
			}
		}
	}
	var all []int
	for pid := range in {
		all = append(all, pid)
	}
	return all
}

// alive says that a process of the training lives.
func alive(dir string, pid int) bool {
	if pid > 0 {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // if it is a child of ours that has ended
	}
	return len(tree(dir)) > 0
}

// end ends the processes of a training.
func end(dir string, pid int, grace time.Duration) error {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	with := syscall.SIGTERM
	for _, each := range tree(dir) {
		_ = syscall.Kill(each, with)
	}
	for range 6000 {
		select {
		case <-deadline.C:
			with = syscall.SIGKILL
		case <-ticker.C:
		}
		if !alive(dir, pid) {
			return nil
		}
		if with == syscall.SIGKILL {
			for _, each := range tree(dir) {
				_ = syscall.Kill(each, with)
			}
		}
	}
	return fmt.Errorf("processes of the training in %s do not end", dir)
}
