package guest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/wire"
)

// kill signals a command with all its descendants: its session, processes seen to descend from it in other sessions, and those
// with its mark. After SIGKILL, none is left.
func (g *guest) kill(request, target int64, sig unix.Signal) {
	g.table.mu.Lock()
	c := g.table.byRequest[target]
	g.table.mu.Unlock()
	if c != nil {
		if sig != unix.SIGKILL {
			// Parents first: a shell that sees its child end before it is signalled itself prints a message about it.
			for _, pid := range slices.Sorted(maps.Keys(g.table.track(c))) {
				_ = unix.Kill(pid, sig)
			}
		} else {
			g.killTree(c)
		}
	}
	g.reply(request, nil, nil)
}

// treeTime is how long killTree tries before it kills everything in the sandbox: a fork bomb can be faster than any search.
const treeTime = 3 * time.Second

// killTree stops all processes before it kills them: stopped processes cannot fork during the search.
func (g *guest) killTree(c *command) {
	for began := time.Now(); ; {
		if time.Since(began) > treeTime {
			g.killEverything()
			return
		}
		stopped := map[int]bool{}
		for range 20 {
			found := false
			for pid := range g.table.track(c) {
				if !stopped[pid] {
					stopped[pid], found = true, true
					_ = unix.Kill(pid, unix.SIGSTOP)
				}
			}
			if !found {
				break
			}
		}
		if len(stopped) == 0 {
			return
		}
		for pid := range stopped {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
}

// track returns the living processes of a command and remembers them: when a process's parent dies, process 1 becomes its
// parent, and only memory and marks tell which command it belongs to.
func (t *commandTable) track(c *command) map[int]bool {
	t.garbage.collect()
	all := Processes()
	t.garbage.count(len(all) * processGarbage)
	t.mu.Lock()
	defer t.mu.Unlock()
	living := map[int]bool{}
	for pid := range c.tree {
		if _, ok := all[pid]; !ok {
			delete(c.tree, pid)
		}
	}
	t.claim(c, all)
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if c.tree[pid] || (p.Session != c.pid && !c.tree[p.Parent] && pid != c.pid) {
				continue
			}
			c.tree[pid], grown = true, true
		}
	}
	for pid := range c.tree {
		if all[pid].State != 'Z' {
			living[pid] = true
		}
	}
	return living
}

// killAll ends all processes but this one, and removes System V objects. One signal to all is atomic against forking; then it
// waits for the reaper.
func (g *guest) killAll(request int64) {
	g.killEverything()
	for !g.table.recorded() {
		time.Sleep(50 * time.Microsecond)
	}
	freeIPC()
	g.reply(request, nil, nil)
}

// recorded reports whether the reaper has recorded the end of all commands that it has reaped: the next command is then alone.
func (t *commandTable) recorded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for pid, c := range t.running {
		if !c.ended && unix.Kill(pid, 0) == unix.ESRCH {
			return false
		}
	}
	return true
}

func (g *guest) killEverything() {
	if g.bare != nil {
		killDescendants(&g.garbage)
		return
	}
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		// ESRCH comes only when all processes have been reaped, too.
		if err := unix.Kill(-1, unix.SIGKILL); err == unix.ESRCH {
			break
		}
		time.Sleep(wait)
	}
}

// count replies with the number of living processes beside the guest.
func (g *guest) count(request int64) {
	n, all := 0, Processes()
	g.garbage.count(len(all) * processGarbage)
	for _, p := range all {
		if p.State != 'Z' {
			n++
		}
	}
	g.reply(request, nil, func(e *wire.Encoder) { e.Int(int64(n)) })
}

// processGarbage is about how many bytes of garbage it makes to read one process.
const processGarbage = 2 << 10

// Process is what /proc tells of a process.
type Process struct {
	Parent, Session int
	State           byte
	Born            uint64 // in ticks
}

// ReadProcess reads /proc.
func ReadProcess(pid int) (Process, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, err
	}
	// The program's name comes first and may hold anything: parse after its last parenthesis.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return Process{}, fmt.Errorf("process %d: %q is malformed", pid, text)
	}
	p := Process{State: fields[0][0]}
	p.Parent, _ = strconv.Atoi(fields[1])
	p.Session, _ = strconv.Atoi(fields[3])
	p.Born, _ = strconv.ParseUint(fields[19], 10, 64)
	return p, nil
}

// Processes returns all processes but process 1 and this one.
func Processes() map[int]Process {
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]Process, len(names))
	self := os.Getpid()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 || pid == self {
			continue
		}
		if p, err := ReadProcess(pid); err == nil {
			all[pid] = p
		}
	}
	return all
}

func readNames(dir string) ([]string, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Readdirnames(-1)
}
