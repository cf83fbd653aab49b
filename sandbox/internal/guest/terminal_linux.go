package guest

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenTerminal makes a terminal of a size and returns both its ends, close-on-exec. It trusts no path but /dev/ptmx, and checks
// that: it opens the other end through the first.
func OpenTerminal(rows, cols uint16) (master, slave int, err error) {
	master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	// Fails when master is not the master of a terminal.
	number, err := unix.IoctlGetUint32(master, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	}
	if err == nil {
		slave, err = peer(master, number)
	}
	if err != nil {
		unix.Close(master)
		return -1, -1, err
	}
	return master, slave, nil
}

func peer(master int, number uint32) (int, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, failed := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if failed == 0 {
		return int(fd), nil
	}
	// An older kernel without this call.
	return unix.Open("/dev/pts/"+strconv.FormatUint(uint64(number), 10), flags|unix.O_NOFOLLOW, 0)
}

// IsMaster reports whether a descriptor is the master of a terminal.
func IsMaster(fd int) bool {
	_, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	return err == nil
}
