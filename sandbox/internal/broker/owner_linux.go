package broker

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// noFixup is a secure bit: a change of user does not change capabilities.
const noFixup = 1 << 2

// ownedBy runs f as a user who keeps this thread's capabilities. User namespaces that f makes belong to that user. The kernel
// has per-user quotas, such as of inotify instances and message queues, and also counts them for the owner of a namespace: if
// that were root, one sandbox could use up what other sandboxes and the machine need.
func ownedBy(user int, f func() error) error {
	runtime.LockOSThread()
	bits, err := unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECUREBITS, uintptr(bits|noFixup), 0, 0, 0)
	}
	if err == nil {
		err = effective(user)
	}
	if err != nil {
		return fmt.Errorf("take on the user of a sandbox: %w", err)
	}
	err = f()
	if effective(0) == nil && unix.Prctl(unix.PR_SET_SECUREBITS, uintptr(bits), 0, 0, 0) == nil {
		runtime.UnlockOSThread() // otherwise the thread ends with its goroutine
	}
	return err
}

// effective sets the effective user of this thread only.
func effective(user int) error {
	const keep = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(user), keep); errno != 0 {
		return errno
	}
	return nil
}
