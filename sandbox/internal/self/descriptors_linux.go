package self

import "golang.org/x/sys/unix"

// KeepDescriptors makes sure that children do not inherit what this program has inherited.
func KeepDescriptors() { _ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }
