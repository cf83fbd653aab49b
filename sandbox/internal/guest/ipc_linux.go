package guest

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// freeIPC removes the System V objects that processes left: shared memory, queues and semaphores, which outlive their makers.
// It does so only where the sandbox has an IPC namespace of its own, as it does where it has its own processes.
func freeIPC() {
	if os.Getpid() != 1 {
		return
	}
	// For each kind, the calls that return the highest index in use, and the object at an index.
	for _, kind := range []struct{ call, info, stat uintptr }{
		{unix.SYS_SHMCTL, 14, 13}, {unix.SYS_MSGCTL, 12, 11}, {unix.SYS_SEMCTL, 19, 18},
	} {
		var result [256]byte // a buffer for the result, which is at most 112 bytes
		control := func(id, command uintptr) (uintptr, bool) {
			at := uintptr(unsafe.Pointer(&result))
			args := [3]uintptr{command, at, 0}
			if kind.call == unix.SYS_SEMCTL {
				args = [3]uintptr{0, command, at}
			}
			result, _, errno := unix.Syscall6(kind.call, id, args[0], args[1], args[2], 0, 0)
			return result, errno == 0
		}
		last, ok := control(0, kind.info)
		for index := uintptr(0); ok && index <= last; index++ {
			if id, there := control(index, kind.stat); there {
				_, _ = control(id, unix.IPC_RMID)
			}
		}
	}
}
