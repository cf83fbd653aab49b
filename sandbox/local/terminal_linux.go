package local

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/guest"
)

// openTerminal makes a terminal: one end for the runner and one for a command.
func openTerminal(size sandbox.TTY) (master, slave *os.File, err error) {
	m, s, err := guest.OpenTerminal(size.Rows, size.Cols)
	if err != nil {
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	if master, err = command.TakeTerminal(m); err != nil {
		unix.Close(s)
		return nil, nil, err
	}
	return master, os.NewFile(uintptr(s), "terminal"), nil
}
