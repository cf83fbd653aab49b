package local

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"trajgen/sandbox"

	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal: one end for the runner and one for a command.
func openTerminal(size sandbox.TTY) (master, slave *os.File, err error) {
	fail := func(err error) (*os.File, *os.File, error) {
		if master != nil {
			master.Close()
		}
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return fail(err)
	}
	var name [128]byte
	fd := int(master.Fd())
	for _, request := range []uint{unix.TIOCPTYGRANT, unix.TIOCPTYUNLK} {
		if err := unix.IoctlSetInt(fd, request, 0); err != nil {
			return fail(err)
		}
	}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), unix.TIOCPTYGNAME, uintptr(unsafe.Pointer(&name[0])))
	if errno != 0 {
		return fail(errno)
	}
	path, _, _ := bytes.Cut(name[:], []byte{0})
	if slave, err = os.OpenFile(string(path), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return fail(err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols}); err != nil {
		slave.Close()
		return fail(err)
	}
	return master, slave, nil
}
