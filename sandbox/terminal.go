package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// terminalTerm is what commands on a terminal find in TERM, unless they or the sandbox say otherwise.
const terminalTerm = "TERM=xterm"

// sized is the size of a terminal that may have been left open.
func (t TTY) sized() TTY {
	if t == (TTY{}) {
		return TTY{Rows: 24, Cols: 80}
	}
	return t
}

// terminalEnv are the variables of a command, those of a terminal among them when it has one.
func terminalEnv(cmd *Command, spec map[string]string) []string {
	if _, ok := spec["TERM"]; ok || cmd.TTY == nil {
		return cmd.Env
	}
	return append([]string{terminalTerm}, cmd.Env...)
}

// attach makes the master of a terminal the streams of a command, until that has ended.
func (s *streams) attach(master *os.File, output io.Writer, ended <-chan struct{}) {
	if output == nil {
		output = io.Discard // it must be read all the same
	}
	s.stdin = master
	s.pumps = []*pump{newPump(master, output, ended)}
}

// resize tells a terminal its size; the kernel tells those who run on it.
func resize(ctx context.Context, master *os.File, size TTY) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	connection, err := master.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize the terminal: %w", err)
	}
	size = size.sized()
	controlErr := connection.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
	if controlErr != nil {
		err = controlErr
	}
	if err != nil {
		return fmt.Errorf("resize the terminal: %w", err)
	}
	return nil
}
