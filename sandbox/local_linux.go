package sandbox

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

// killMarked kills every process whose environment carries the mark of a directory, or of one below it, until there is
// none.
func killMarked(dir string) error {
	for wait := time.Millisecond; wait < 4*time.Second; wait *= 2 {
		found := false
		for _, pid := range allProcesses() {
			if marked(pid, dir) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("processes of %s do not die", dir)
}

func marked(pid int, dir string) bool {
	// Empty for a zombie, which is as good as dead.
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || pid == os.Getpid() {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := strings.CutPrefix(string(entry), localMark+"="); ok {
			return value == dir || strings.HasPrefix(value, dir+"/")
		}
	}
	return false
}

func allProcesses() []int {
	names, _ := filepath.Glob("/proc/[0-9]*")
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// sessionTree returns the living processes of a session and all descendants of its leader.
func sessionTree(leader int) []int {
	parents, sessions := map[int]int{}, map[int]int{}
	for _, pid := range allProcesses() {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 4 || fields[0] == "Z" {
			continue
		}
		parents[pid], _ = strconv.Atoi(fields[1])
		sessions[pid], _ = strconv.Atoi(fields[3])
	}
	in := map[int]bool{}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if !in[pid] && (pid == leader || sessions[pid] == leader || in[parent]) {
				in[pid], grown = true, true
			}
		}
	}
	tree := make([]int, 0, len(in))
	for pid := range in {
		tree = append(tree, pid)
	}
	return tree
}
