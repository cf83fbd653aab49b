package guest

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// ownCounters opens the counters of this process's container, as far as they exist.
func ownCounters() Counters {
	first := func(names ...string) int {
		for _, name := range names {
			if fd, err := unix.Open("/sys/fs/cgroup/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
				return fd
			}
		}
		return -1
	}
	peak, limit := first("memory/memory.memsw.max_usage_in_bytes", "memory/memory.max_usage_in_bytes"), first("memory/memory.memsw.limit_in_bytes", "memory/memory.limit_in_bytes")
	defer unix.Close(limit)
	return Counters{
		Memory:    first("memory.events", "memory/memory.oom_control"),
		Processes: first("pids.events", "pids/pids.events"),
		CPU:       first("cpu.stat", "cpu/cpu.stat"),
		Peak:      peak,
		Limit:     counted(limit, ""),
	}
}

// preferForOOM makes the kernel kill a command and its children before this process when the container is out of memory.
func preferForOOM(pid int) { _ = tell("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", "300") }

// withoutNetwork puts the calling thread, and its children, under a filter that refuses network sockets, for containers whose
// network cannot be taken away.
func withoutNetwork() error {
	var f filter
	f.load(offsetArch)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.ret(unix.SECCOMP_RET_KILL_PROCESS)
	f.load(offsetCall)
	f.jump(unix.BPF_JEQ, unix.SYS_SOCKET, 1, 0)
	f.ret(unix.SECCOMP_RET_ALLOW)
	f.load(offsetArgs)
	f.jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1)
	f.ret(unix.SECCOMP_RET_ALLOW)
	f.ret(fails(unix.EAFNOSUPPORT))
	return f.install("sockets")
}
