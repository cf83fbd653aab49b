package guest

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// guard keeps children of the calling thread from signalling this process, or its ancestors. Process 1 of a namespace needs no
// guard: the kernel protects it. guard must run before the rest of the confinement, except no_new_privs.
//
// A system call filter lists the guarded processes by number; it does not know threads that this process starts later, and a
// signal to a thread can hit the whole process. Landlock does know what is outside, but needs a recent kernel.
func guard() error {
	if os.Getpid() == 1 {
		return nil
	}
	if err := guardNumbers(); err != nil {
		return err
	}
	if version := LandlockVersion(); version < 6 {
		return fmt.Errorf("signals to threads that the agent starts later are not refused: landlock version %d, want 6", version)
	}
	return confineSignals()
}

// guardNumbers installs the part of the guard that is a system call filter.
func guardNumbers() error {
	targets, err := guarded()
	if err != nil {
		return fmt.Errorf("find whom to guard from signals: %w", err)
	}
	return guarding(targets).install("signals")
}

// guarded returns all numbers by which a signal could reach the guarded processes.
func guarded() ([]uint32, error) {
	all := []int{-1}
	threads, err := readNames("/proc/self/task")
	if err != nil {
		return nil, err
	}
	for _, name := range threads {
		if tid, err := strconv.Atoi(name); err == nil {
			all = append(all, tid)
		}
	}
	for pid := os.Getpid(); pid > 0; {
		all = append(all, pid)
		if group, err := unix.Getpgid(pid); err == nil && group > 0 {
			all = append(all, -group)
		}
		p, err := ReadProcess(pid)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		pid = p.Parent // 0 where /proc does not show the process, because it is outside of the namespace
	}
	slices.Sort(all)
	var numbers []uint32
	for _, n := range slices.Compact(all) {
		numbers = append(numbers, uint32(int32(n)))
	}
	return numbers, nil
}

// guarding builds a filter of all calls that send a signal to another process.
func guarding(targets []uint32) filter {
	var refuse filter
	refuse.load(offsetArgs)
	for _, n := range targets {
		refuse.jump(unix.BPF_JEQ, n, 0, 1)
		refuse.ret(fails(unix.EPERM))
	}
	refuse.ret(unix.SECCOMP_RET_ALLOW)

	var others filter
	// The call also accepts a directory of /proc as descriptor. ENOSYS looks like a kernel without the call.
	others.jump(unix.BPF_JEQ, unix.SYS_PIDFD_SEND_SIGNAL, 0, 1)
	others.ret(fails(unix.ENOSYS))
	// F_SETOWN may name any process; without F_SETSIG it gets SIGIO, which does no harm.
	others.jump(unix.BPF_JEQ, unix.SYS_FCNTL, 0, 4)
	others.load(offsetArgs + 8)
	others.jump(unix.BPF_JEQ, unix.F_SETSIG, 0, 1)
	others.ret(fails(unix.EINVAL))
	others.ret(unix.SECCOMP_RET_ALLOW)
	others.jump(unix.BPF_JEQ, unix.SYS_TGKILL, 1, 0)
	others.ret(unix.SECCOMP_RET_ALLOW)
	// The Go runtime of this process preempts its threads with SIGURG.
	others.load(offsetArgs + 16)
	others.jump(unix.BPF_JEQ, uint32(unix.SIGURG), 0, 1)
	others.ret(unix.SECCOMP_RET_ALLOW)

	var f filter
	f.load(offsetArch)
	f.jump(unix.BPF_JEQ, auditArch, 1, 0)
	f.ret(unix.SECCOMP_RET_KILL_PROCESS)
	f.load(offsetCall)
	byNumber := []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN}
	for i, call := range byNumber {
		f.jump(unix.BPF_JEQ, call, uint8(len(byNumber)-1-i+len(others)), 0)
	}
	return slices.Concat(f, others, refuse)
}

// confineSignals lets the calling thread and its children send signals to each other only.
func confineSignals() error {
	return landlock(unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL}, func(int) error { return nil })
}
