package self

import "golang.org/x/sys/unix"

// KeepDescriptors makes sure that what this program inherited is inherited no further.
func KeepDescriptors() { _ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) }
