package broker

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// noFixup is a secure bit: a change of user does not change capabilities.
const noFixup = 1 << 2

// ownedBy runs f as a user without taking capabilities from it. The user namespaces that f makes are then that user's. Some
// things the kernel gives to each user but so often, instances of inotify and message queues among them, and counts them for
// the owner of a namespace, too: were that root, one sandbox could take what all others and the machine itself need.
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
		runtime.UnlockOSThread() // else it ends with its goroutine
	}
	return err
}

// effective sets the effective user of this thread alone.
func effective(user int) error {
	const keep = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(user), keep); errno != 0 {
		return errno
	}
	return nil
}
