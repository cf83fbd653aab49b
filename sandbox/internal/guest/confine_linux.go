package guest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// kept are the capabilities of root in a sandbox. They count in the sandbox's user namespace alone.
const kept = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID | 1<<unix.CAP_KILL |
	1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SETFCAP

// confine takes from the calling thread, and from what it forks, all that commands must not have. Only this thread:
// doing the same to all threads of a Go program costs milliseconds.
func confine(clone3 bool) error {
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
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	const high = kept >> 32
	data := [2]unix.CapUserData{
		{Effective: kept & 0xffffffff, Permitted: kept & 0xffffffff},
		{Effective: high, Permitted: high},
	}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return restrict(clone3)
}

// limit sets the resource limits that commands inherit. Hard limits are only ever lowered.
func limit(boot *Boot) error {
	wanted := map[int]uint64{
		unix.RLIMIT_NOFILE:     uint64(boot.Files),
		unix.RLIMIT_CORE:       0,
		unix.RLIMIT_MEMLOCK:    64 << 10,
		unix.RLIMIT_SIGPENDING: 4096,
		unix.RLIMIT_MSGQUEUE:   800 << 10,
	}
	for resource, value := range wanted {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		value = min(value, now.Max)
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return fmt.Errorf("set resource limit %d: %w", resource, err)
		}
	}
	return nil
}

// standIns are the limits of processes where no cgroup bounds the sandbox.
func standIns(boot *Boot) map[int]uint64 {
	limits := map[int]uint64{}
	if boot.Memory > 0 {
		limits[unix.RLIMIT_DATA] = uint64(boot.Memory)
	}
	if boot.Processes > 0 {
		// Counted for the user in this namespace, and the guest's own threads are among them.
		limits[unix.RLIMIT_NPROC] = uint64(boot.Processes) + 24
	}
	return limits
}

// lowerLimits puts the guest under the stand-ins until restore is called, so that a command is born with them: setting
// them afterwards loses the race against a fork bomb. Only the soft limits, for the guest itself must get out from
// under them again: it has to be able to make a thread when a bomb has used up all.
func (g *guest) lowerLimits() (restore func()) {
	before := map[int]unix.Rlimit{}
	for resource, value := range g.limits {
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
