package guest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// kept are the capabilities of root in a sandbox. They count in the sandbox's user namespace alone.
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SETFCAP

// told is a capability that counts nowhere but in the first user namespace. The guest's threads may have it and commands
// never do: who has more than they have, they can neither slow down nor bind to a processor.
const told = 1 << unix.CAP_WAKE_ALARM

// confine takes from the calling thread, and from what it forks, all that commands must not have. Only this thread:
// doing the same to all threads of a Go program costs milliseconds.
func confine(p policy) error {
	for _, step := range []func() error{dropBounding, dropCapabilities, unprivileged} {
		if err := step(); err != nil {
			return err
		}
	}
	return restrict(p)
}

func dropBounding() error {
	for c := uintptr(0); c <= 63; c++ {
		if kept&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // past the last capability that the kernel knows
		} else if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for i := range data {
		effective, permitted := uint64(kept)>>(32*i), uint64(kept|told)>>(32*i)
		data[i] = unix.CapUserData{
			Effective: data[i].Permitted & uint32(effective), Permitted: data[i].Permitted & uint32(permitted),
		}
	}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

func unprivileged() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// limit sets the resource limits that commands inherit. Hard limits are only ever lowered. files is 0 where this process
// needs more open files than its commands may have.
func limit(files int64) error {
	wanted := map[int]uint64{
		unix.RLIMIT_CORE:       1, // not even a program of the machine takes dumps, as it would with 0
		unix.RLIMIT_MEMLOCK:    64 << 10,
		unix.RLIMIT_SIGPENDING: 4096,
		unix.RLIMIT_MSGQUEUE:   128 << 10,
	}
	if files > 0 {
		wanted[unix.RLIMIT_NOFILE] = uint64(files)
	}
	for resource, value := range wanted {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		value = min(value, now.Max)
		if now.Cur == value && now.Max == value {
			continue // gVisor has limits that cannot be set
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", resource, err)
		}
	}
	return nil
}

// standIns are the limits of processes where no cgroup bounds the sandbox.
func standIns(boot *Boot) map[int]uint64 {
	limits := map[int]uint64{}
	if boot.Shared {
		// All sandboxes of this user share how many descriptors may be on their way in messages, and a process is refused more
		// when they are as many as it may have open itself. The guest answers with descriptors: it must be allowed more.
		limits[unix.RLIMIT_NOFILE] = uint64(boot.Files)
	}
	if boot.Memory > 0 {
		limits[unix.RLIMIT_DATA] = uint64(boot.Memory)
	}
	if boot.Processes > 0 {
		// Counted for the user in this namespace, and the guest's own threads are among them.
		limits[unix.RLIMIT_NPROC] = uint64(boot.Processes) + 24
	}
	return limits
}

// bind sets the hard limits of a command that was born under the soft ones. The thread that forks may not set those of others,
// as commands must not.
func (g *guest) bind(pid int) {
	if len(g.limits) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for resource, value := range g.limits {
			_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
		}
	}()
	<-done
}

// spareFiles are as many as the other threads of a process open while one of them forks.
const spareFiles = 64

// opened is the number that the next file gets: all below are in use.
func (g *guest) opened() uint64 {
	fd, err := unix.FcntlInt(uintptr(g.null), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	unix.Close(fd)
	return uint64(fd)
}

// lowerLimits puts the guest under the stand-ins until restore is called, so that a command is born with them: setting
// them afterwards loses the race against a fork bomb. Only the soft limits, for the guest itself must get out from
// under them again: it has to be able to make a thread when a bomb has used up all.
func (g *guest) lowerLimits() (restore func()) {
	before := map[int]unix.Rlimit{}
	for resource, value := range g.limits {
		if resource == unix.RLIMIT_NOFILE && g.bare != nil {
			value = max(value, g.opened()+spareFiles)
		}
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) == nil {
			before[resource] = now
			_ = unix.Setrlimit(resource, &unix.Rlimit{Cur: min(value, now.Max), Max: now.Max})
		}
	}
	return func() {
		for resource, limit := range before {
			_ = unix.Setrlimit(resource, &limit)
		}
	}
}
