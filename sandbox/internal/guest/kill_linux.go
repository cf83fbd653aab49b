package guest

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/wire"
)

// kill signals a command with all its descendants: its session, what it was seen to have forked into others, and what
// bears its mark. With SIGKILL, nothing of it is left.
func (g *guest) kill(request, target int64, sig unix.Signal) {
	g.mu.Lock()
	c := g.byRequest[target]
	g.mu.Unlock()
	if c != nil {
		if sig != unix.SIGKILL {
			// Parents come first: a shell that sees its child end before it is told to end itself has something to say of it.
			for _, pid := range slices.Sorted(maps.Keys(g.track(c))) {
				_ = unix.Kill(pid, sig)
			}
		} else {
			g.killTree(c)
		}
	}
	g.reply(request, nil, nil)
}

// treeTime is how long a tree is hunted before everything in the sandbox is killed instead: a fork bomb can be faster
// than any search.
const treeTime = 3 * time.Second

// killTree stops all first: what stands still cannot fork away from under the search.
func (g *guest) killTree(c *command) {
	for began := time.Now(); ; {
		if time.Since(began) > treeTime {
			g.killEverything()
			return
		}
		stopped := map[int]bool{}
		for range 20 {
			found := false
			for pid := range g.track(c) {
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

// track returns the living processes of a command and remembers them: one whose parent dies is given to process 1,
// and only memory and marks tell then whose it was.
func (g *guest) track(c *command) map[int]bool {
	g.garbage.collect()
	all := processes()
	g.garbage.count(len(all) * processGarbage)
	g.mu.Lock()
	defer g.mu.Unlock()
	living := map[int]bool{}
	for pid := range c.tree {
		if _, ok := all[pid]; !ok {
			delete(c.tree, pid)
		}
	}
	g.claim(c, all)
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if c.tree[pid] || (p.session != c.pid && !c.tree[p.parent] && pid != c.pid) {
				continue
			}
			c.tree[pid], grown = true, true
		}
	}
	for pid := range c.tree {
		if all[pid].state != 'Z' {
			living[pid] = true
		}
	}
	return living
}

// killAll ends everything but this process, and what would outlive it. One signal to all is atomic against forking; the rest is waiting for the
// reaper.
func (g *guest) killAll(request int64) {
	g.killEverything()
	for !g.recorded() {
		time.Sleep(50 * time.Microsecond)
	}
	freeIPC()
	g.reply(request, nil, nil)
}

// recorded says that the reaper has made a note of all commands that it has reaped: what is started next is alone then.
func (g *guest) recorded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for pid, c := range g.running {
		if !c.ended && unix.Kill(pid, 0) == unix.ESRCH {
			return false
		}
	}
	return true
}

func (g *guest) killEverything() {
	if g.bare != nil {
		g.killDescendants()
		return
	}
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		// No process is left to be signalled only when all have been reaped, too.
		if err := unix.Kill(-1, unix.SIGKILL); err == unix.ESRCH {
			break
		}
		time.Sleep(wait)
	}
}

// count tells how many processes live beside the guest.
func (g *guest) count(request int64) {
	n, all := 0, processes()
	g.garbage.count(len(all) * processGarbage)
	for _, p := range all {
		if p.state != 'Z' {
			n++
		}
	}
	g.reply(request, nil, func(e *wire.Encoder) { e.Int(int64(n)) })
}

// processGarbage is about what reading one process leaves behind.
const processGarbage = 2 << 10

type process struct {
	parent, session int
	state           byte
	born            uint64 // in ticks
}

func processes() map[int]process {
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]process, len(names))
	self := os.Getpid()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 || pid == self {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// The program's name comes first and may hold anything: look behind its last bracket.
		text := string(stat)
		fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
		if len(fields) < 20 {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		session, _ := strconv.Atoi(fields[3])
		born, _ := strconv.ParseUint(fields[19], 10, 64)
		all[pid] = process{parent: parent, session: session, state: fields[0][0], born: born}
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
