package guest

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits that affected a command, in Exit.
const (
	LimitMemory = 1 << iota
	LimitProcesses
	LimitCPU
	LimitDisk
	LimitInodes
	LimitMachine
)

// Counters are descriptors of files in which the kernel counts how often limits had an effect; -1 is none.
type Counters struct {
	Memory    int // memory.oom_control or memory.events
	Processes int // pids.events
	CPU       int // cpu.stat
	Peak      int // memory.max_usage_in_bytes, where Memory does not count how often its limit was reached
	// Limit is the memory limit in bytes, where there is a Peak.
	Limit int64
	Disk  string // directory of the file system with the disk limit
}

// NoCounters counts nothing.
var NoCounters = Counters{Memory: -1, Processes: -1, CPU: -1, Peak: -1}

func (c Counters) close() {
	for _, fd := range []int{c.Memory, c.Processes, c.CPU, c.Peak} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// counts are the values of Counters at one moment.
type counts struct{ memory, reached, processes, cpu int64 }

func (c Counters) read() counts {
	return counts{memory: counted(c.Memory, "oom_kill "), reached: counted(c.Memory, "oom "), processes: counted(c.Processes, "max "), cpu: counted(c.CPU, "nr_throttled ")}
}

func counted(fd int, name string) int64 {
	if fd < 0 {
		return 0
	}
	var buffer [512]byte
	n, err := unix.Pread(fd, buffer[:], 0)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(buffer[:n])) {
		if value, ok := strings.CutPrefix(line, name); ok {
			count, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return count
		}
	}
	return 0
}

// charge is how much memory the kernel may reserve at once: usage can stay below the limit by that much.
const charge = 1 << 20

const (
	// settleTime bounds how long the end of a command is delayed for processes that it has left behind.
	settleTime = 5 * time.Second
	// settlePause is how long no process may end and no fork be refused.
	settlePause = 200 * time.Millisecond
)

// settle waits until forks are no longer refused and processes no longer end. The rest of a fork bomb dies out as its forks are
// refused; a command that began before could have its own forks refused.
func (c Counters) settle(garbage *garbage) {
	look := func() [2]int64 {
		all := Processes()
		garbage.count(len(all) * processGarbage)
		garbage.collect()
		return [2]int64{c.read().processes, int64(len(all))}
	}
	for began, last := time.Now(), look(); time.Since(began) < settleTime; {
		time.Sleep(settlePause)
		now := look()
		if now == last {
			return
		}
		last = now
	}
}

// hit returns the limits that had an effect since before.
func (c Counters) hit(before counts) int64 {
	var limits int64
	now := c.read()
	for _, n := range []struct{ before, now, limit int64 }{
		{before.processes, now.processes, LimitProcesses},
		{before.cpu, now.cpu, LimitCPU},
	} {
		if n.now > n.before {
			limits |= n.limit
		}
	}
	switch {
	case now.memory == before.memory:
	case now.reached > before.reached || c.Peak >= 0 && counted(c.Peak, "") >= c.Limit-charge:
		limits |= LimitMemory
	default: // the kernel counts all its kills for lack of memory, whatever the cause
		limits |= LimitMachine
	}
	var fs unix.Statfs_t
	if unix.Statfs(c.Disk, &fs) != nil {
		return limits
	}
	if fs.Blocks > 0 && fs.Bavail == 0 {
		limits |= LimitDisk
	}
	if fs.Files > 0 && fs.Ffree == 0 {
		limits |= LimitInodes
	}
	return limits
}
