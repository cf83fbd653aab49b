package command

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// TakeTerminal makes a pollable file of the master of a terminal.
func TakeTerminal(fd int) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("take a terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}
