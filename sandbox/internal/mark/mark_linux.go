package mark

import (
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/guest"
)

// marks are the marks of the processes of some sandboxes, or of one command.
type marks struct {
	name   string          // value in the environment; values below it match, too
	limits map[uint64]bool // values of the limit, under the mask
	mask   uint64
	born   uint64 // in ticks: no process with one of these marks is older
}

// Kill kills every process that descends from a sandbox in a directory that was made at born, until there is none.
func Kill(dir string, born uint64) error { return sandboxMarks(dir, born, dir).kill() }

// KillBelow kills every process of the sandboxes below the directory of a dead runner. The limit has a hash of the sandbox's
// directory only, so KillBelow has to list the directories.
func KillBelow(path string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil { // sandboxes use the resolved path
		path = real
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("find the sandboxes of a dead runner: %w", err)
	}
	var boxes []string
	for _, entry := range entries {
		if entry.IsDir() {
			boxes = append(boxes, filepath.Join(path, entry.Name()))
		}
	}
	return sandboxMarks(path, 0, boxes...).kill()
}

// sandboxMarks returns the marks of all commands of sandboxes in a directory.
func sandboxMarks(dir string, born uint64, boxes ...string) marks {
	m := marks{name: dir, limits: map[uint64]bool{}, mask: ^uint64(1<<commandBits - 1), born: born}
	for _, box := range boxes {
		m.limits[limitOf(box+"/0")] = true
	}
	return m
}

func (m marks) kill() error {
	for wait := time.Millisecond; wait < 4*time.Second; wait *= 2 {
		found := false
		for pid, p := range guest.Processes() {
			if m.on(pid, p) {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if !found {
			return nil
		}
		time.Sleep(wait)
	}
	return fmt.Errorf("processes of %s do not die", m.name)
}

// on reports whether a process has one of the marks: in its environment or, where the process has changed that, as a limit.
func (m marks) on(pid int, p guest.Process) bool {
	if p.Born < m.born || p.State == 'Z' {
		return false
	}
	environ, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // if we may read it
	for entry := range strings.SplitSeq(string(environ), "\x00") {
		if below, in := strings.CutPrefix(entry, Variable+"="+m.name); in && (below == "" || below[0] == '/') {
			return true
		}
	}
	return m.limits[guest.Mark(pid)&m.mask]
}

// commandBits is how many bits of the limit hold a command's number.
const commandBits = 20

// limitOf encodes the mark of a directory and a command's number as a limit that Linux ignores.
func limitOf(mark string) uint64 {
	dir, number := filepath.Split(mark)
	n, _ := strconv.ParseUint(number, 10, 64)
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(dir)) // a hash.Hash never returns an error
	return 1<<62 | hash.Sum64()>>(2+commandBits)<<commandBits | n%(1<<commandBits)
}

// maxHasty bounds how many children of a command are marked that it started before it was marked itself.
const maxHasty = 64

// Put marks a process that has just begun, and the children that it has started already. Children that have been orphaned by
// then are known by their environment only.
func Put(pid int, mark string) {
	limit := &unix.Rlimit{Cur: limitOf(mark), Max: unix.RLIM_INFINITY}
	for all := []int{pid}; len(all) > 0 && len(all) <= maxHasty; all = all[1:] {
		if unix.Prlimit(all[0], unix.RLIMIT_RSS, limit, nil) != nil {
			continue
		}
		self := strconv.Itoa(all[0])
		children, _ := os.ReadFile("/proc/" + self + "/task/" + self + "/children") // some kernels do not have it
		for name := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(name); err == nil && guest.Mark(child) != limit.Cur {
				all = append(all, child)
			}
		}
	}
}

// Birth returns the earliest start time of a process that begins now; 0 where /proc does not tell the time, as with some
// emulations of Linux.
func Birth() uint64 {
	if !clocked() {
		return 0
	}
	return guest.Ticks() - 1
}

var clocked = sync.OnceValue(func() bool {
	self, err := guest.ReadProcess(os.Getpid())
	return err == nil && self.Born > 0 && self.Born <= guest.Ticks()
})

// Tree returns the living processes of a command: its session, those with its mark, and all descendants, usually parents first:
// a shell that sees its child end before it is signalled itself prints a message about it.
func Tree(leader int, mark string, born uint64) []int {
	m := marks{name: mark, limits: map[uint64]bool{limitOf(mark): true}, mask: ^uint64(0), born: born}
	in := map[int]bool{}
	all := guest.Processes()
	maps.DeleteFunc(all, func(_ int, p guest.Process) bool { return p.Born < born || p.State == 'Z' })
	for pid, p := range all {
		in[pid] = pid == leader || p.Session == leader || m.on(pid, p)
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if !in[pid] && in[p.Parent] {
				in[pid], grown = true, true
			}
		}
	}
	maps.DeleteFunc(in, func(_ int, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(in))
}
