package guest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// kept are the capabilities of root in a sandbox. They are valid in the sandbox's user namespace only.
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SETFCAP

// guestOnly is a capability without effect outside of the first user namespace. The guest's threads have it and commands never
// do. So the guest has more capabilities than commands, which keeps them from changing its priority or affinity.
const guestOnly = 1 << unix.CAP_WAKE_ALARM

// confine takes from the calling thread, and its children, all that commands must not have. It changes this thread only:
// changing all threads of a Go program takes milliseconds.
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
			break // after the last capability that the kernel knows
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
		effective, permitted := uint64(kept)>>(32*i), uint64(kept|guestOnly)>>(32*i)
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

// limit sets the resource limits that commands inherit. It never raises a hard limit. files is 0 where this process needs more
// open files than its commands may have.
func limit(files int64) error {
	wanted := map[int]uint64{
		unix.RLIMIT_CORE:       1, // with 0, a core handler of the machine would still get the dump
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
			continue // gVisor refuses some limits
		}
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", resource, err)
		}
	}
	return nil
}

// standIns are the per-process limits that replace a cgroup where the sandbox has none.
type standIns struct {
	limits map[int]uint64
	null   int  // a descriptor to copy, for the number of the next one
	shared bool // other threads of this process open files, too
}

func newStandIns(boot *Boot) map[int]uint64 {
	limits := map[int]uint64{}
	if boot.Shared {
		// The kernel counts descriptors in flight in messages for all sandboxes of this user, and refuses more than the
		// sender's own limit of open files. The guest sends descriptors in replies: it must be allowed more.
		limits[unix.RLIMIT_NOFILE] = uint64(boot.Files)
	}
	if boot.Memory > 0 {
		limits[unix.RLIMIT_DATA] = uint64(boot.Memory)
	}
	if boot.Processes > 0 {
		// The kernel counts processes of the user in this namespace, including the guest's threads.
		limits[unix.RLIMIT_NPROC] = uint64(boot.Processes) + 24
	}
	return limits
}

// bind sets the hard limits of a command that was started under the soft ones. The forking thread may not set limits of other
// processes, just like commands.
func (s *standIns) bind(pid int) {
	if len(s.limits) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for resource, value := range s.limits {
			_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: value, Max: value}, nil)
		}
	}()
	<-done
}

// spareFiles is how many files the other threads of a process may open during a fork.
const spareFiles = 64

// opened returns the number that the next opened file gets.
func (s *standIns) opened() uint64 {
	fd, err := unix.FcntlInt(uintptr(s.null), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	unix.Close(fd)
	return uint64(fd)
}

// lower puts the guest under the stand-ins until restore is called, so that a command starts with them: setting them
// later loses the race against a fork bomb. It sets soft limits only, because the guest must get out from under them again: it
// has to be able to make a thread when a bomb has used up all processes.
func (s *standIns) lower() (restore func()) {
	before := map[int]unix.Rlimit{}
	for resource, value := range s.limits {
		if resource == unix.RLIMIT_NOFILE && s.shared {
			value = max(value, s.opened()+spareFiles)
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
