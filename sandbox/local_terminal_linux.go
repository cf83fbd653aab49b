package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/guest"
)

// openTerminal makes a terminal: an end for the runner and one for a command.
func openTerminal(size TTY) (master, slave *os.File, err error) {
	m, s, err := guest.OpenTerminal(size.Rows, size.Cols)
	if err != nil {
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	if master, err = terminalFile(m); err != nil {
		unix.Close(s)
		return nil, nil, err
	}
	return master, os.NewFile(uintptr(s), "terminal"), nil
}

// terminalFile takes over the master of a terminal, for use by goroutines.
func terminalFile(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("take a terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}
