package guest

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A command is marked by the limit of resident memory, which Linux has long ignored. All its descendants inherit the mark,
// whatever happens to environment, session and parents, and every process can read it. A command can change its own mark, but
// only on purpose. The values are larger than any machine's memory, so that a program which reads the limit is not misled.
const firstMark = 1 << 50

// mark gives the next fork a mark. Where the limit cannot be set, c.mark stays 0.
func (t *commandTable) mark(c *command) {
	t.marks++
	if unix.Setrlimit(unix.RLIMIT_RSS, &unix.Rlimit{Cur: firstMark + t.marks, Max: unix.RLIM_INFINITY}) == nil {
		c.mark = firstMark + t.marks
	}
	c.born = Ticks()
}

// Mark returns the mark of a process; 0 when the process is gone.
func Mark(pid int) uint64 {
	limits, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/limits")
	_, rest, _ := strings.Cut(string(limits), "\nMax resident set ")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	mark, _ := strconv.ParseUint(fields[0], 10, 64)
	return mark
}

// Ticks returns the present time in the unit of process start times in /proc.
func Ticks() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return uint64(now.Nano() / int64(10*time.Millisecond))
}

// claim adds orphans to the tree of the command that they came from. The caller holds the lock.
func (t *commandTable) claim(c *command, all map[int]Process) {
	self := os.Getpid()
	var strays []int
	for pid, p := range all {
		if p.Parent != self || p.State == 'Z' || c.tree[pid] {
			continue
		}
		if leader := t.running[pid]; leader != nil && !leader.ended {
			continue
		}
		switch mark := Mark(pid); {
		case mark != 0 && mark == c.mark:
			c.tree[pid] = true
		case mark > firstMark && mark <= firstMark+t.marks: // another command's
		default:
			strays = append(strays, pid)
		}
	}
	if len(strays) == 0 || !t.onlyOne(c, all) {
		return
	}
	for _, pid := range strays {
		if born := all[pid].Born; born > c.born || born == c.born && pid > c.pid {
			c.tree[pid] = true
		}
	}
}

// onlyOne reports whether only c can have started processes since it began: no other command ran, and nothing is left of
// earlier ones. Processes without a mark are then c's.
func (t *commandTable) onlyOne(c *command, all map[int]Process) bool {
	if !c.alone || t.newest != c {
		return false
	}
	for _, p := range descendants(all) {
		if p.Born < c.born && p.State != 'Z' {
			return false
		}
	}
	return true
}
