package guest

import (
	"bytes"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxSockets is how many sockets a sandbox may have for it to get one more that asks for addresses. What waits in those is
// memory of the kernel that no limit counts, and a process can have a thousand of them, with 200 KiB in each.
const maxSockets = 512

// asked is struct seccomp_notif, answered is struct seccomp_notif_resp.
type (
	asked struct {
		id          uint64
		pid, flags  uint32
		call        int32
		arch        uint32
		instruction uint64
		args        [6]uint64
	}
	answered struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// listen installs a filter for the calling thread, and answers what it leaves open on another one. Where something outside
// listens to such questions already, nobody is asked.
func listen(p policy) error {
	f := program(p)
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&prog)))
	if errno == unix.EBUSY {
		p.counted = false
		return restrict(p)
	}
	if errno != 0 {
		return errno
	}
	onOtherThread(func() { decide(int(fd)) })
	return nil
}

// decide answers for ever. Its arguments are numbers, so that nothing can change between question and answer.
func decide(fd int) {
	for {
		var question asked
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&question)))
		if errno == unix.EINTR || errno == unix.ENOENT { // who asked is gone
			continue
		}
		if errno != 0 {
			return
		}
		answer := answered{id: question.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if sockets() > maxSockets {
			answer.flags, answer.errno = 0, -int32(unix.EMFILE)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}
}

// sockets counts all in the network of this process.
func sockets() int {
	content, _ := os.ReadFile("/proc/self/net/sockstat")
	line, _, _ := bytes.Cut(content, []byte("\n"))
	_, used, _ := bytes.Cut(line, []byte("used "))
	n, _ := strconv.Atoi(string(used))
	return n
}
