package guest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxSockets is how many sockets a sandbox may have when it asks for a netlink socket. Data that waits in those is kernel
// memory that no limit counts, and a process can have a thousand of them, with 200 KiB in each.
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

// listen installs a filter, and answers the filter's questions on another thread. Where an outer filter has such a listener
// already, the filter asks none.
func listen(p policy) error {
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if p.everywhere {
		flags |= unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH
	}
	fd, err := install(p, flags)
	if err == unix.EBUSY {
		p.counted = nil
		_, err = install(p, flags&^unix.SECCOMP_FILTER_FLAG_NEW_LISTENER&^unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
	}
	if err != nil {
		return fmt.Errorf("install the system call filter: %w", err)
	}
	if p.counted != nil {
		onOtherThread(func() { decide(fd, p.counted) })
	}
	return nil
}

func install(p policy, flags uintptr) (fd int, err error) {
	f := program(p)
	prog := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	result, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, errno
	}
	if result != 0 && flags&unix.SECCOMP_FILTER_FLAG_NEW_LISTENER == 0 {
		return -1, unix.ESRCH // a thread that could not be put under the filter
	}
	return int(result), nil
}

// questionGarbage is about how many bytes of garbage a question makes.
const questionGarbage = 2 << 10

// decide answers questions and never returns. The arguments are numbers, so that they cannot change between question and
// answer.
func decide(fd int, garbage *garbage) {
	for {
		garbage.count(questionGarbage)
		garbage.collect()
		var question asked
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&question)))
		if errno == unix.EINTR || errno == unix.ENOENT { // the thread that asked is gone
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

// sockets counts all sockets in the network namespace of this process.
func sockets() int {
	content, _ := os.ReadFile("/proc/self/net/sockstat")
	line, _, _ := bytes.Cut(content, []byte("\n"))
	_, used, _ := bytes.Cut(line, []byte("used "))
	n, _ := strconv.Atoi(string(used))
	return n
}
