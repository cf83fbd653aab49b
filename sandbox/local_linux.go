package sandbox

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/guest"
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

// marked says whether a process has the mark of a directory, or of one below it: in its environment or, where it has
// cleared that, as a limit.
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
	limit := guest.Mark(pid)
	return limit == limitOf(dir) || limit>>commandBits == limitOf(dir+"/0")>>commandBits
}

// commandBits are those of a limit that tell the commands of a sandbox apart.
const commandBits = 20

// limitOf is the mark of a directory and a command's number as a limit that Linux does not heed.
func limitOf(mark string) uint64 {
	dir, number := filepath.Split(mark)
	n, _ := strconv.ParseUint(number, 10, 64)
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(dir)) // a hash never fails
	return 1<<62 | hash.Sum64()>>(2+commandBits)<<commandBits | n%(1<<commandBits)
}

// markLimit marks a process that has just begun. What it has started already is known by its environment alone.
func markLimit(pid int, mark string) {
	_ = unix.Prlimit(pid, unix.RLIMIT_RSS, &unix.Rlimit{Cur: limitOf(mark), Max: unix.RLIM_INFINITY}, nil)
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

// markedTree returns the living processes of a session, those that bear the mark of its leader, and all descendants,
// parents first as a rule: a shell that sees its child end before it is told to end itself has something to say of it.
func markedTree(leader int, mark string) []int {
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
	for pid := range parents {
		if marked(pid, mark) {
			in[pid] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for pid, parent := range parents {
			if !in[pid] && (pid == leader || sessions[pid] == leader || in[parent]) {
				in[pid], grown = true, true
			}
		}
	}
	return slices.Sorted(maps.Keys(in))
}
