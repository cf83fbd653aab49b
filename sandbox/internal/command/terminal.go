package command

import (
	"context"
	"fmt"
	"io"
	"os"

	"trajgen/sandbox"

	"golang.org/x/sys/unix"
)

// Sized fills in the default size of a terminal.
func Sized(t sandbox.TTY) sandbox.TTY {
	if t == (sandbox.TTY{}) {
		return sandbox.TTY{Rows: 24, Cols: 80}
	}
	return t
}

// Settle says that Attach has been called or will not be.
func (s *Streams) Settle() {
	if s.terminal != nil {
		close(s.terminal)
	}
}

// Attach makes the master of a terminal the streams of a command, until the command has ended.
func (s *Streams) Attach(master *os.File, output io.Writer, ended <-chan struct{}) {
	if output == nil {
		output = io.Discard // the terminal must be read all the same
	}
	s.stdin = master
	s.pumps = []*pump{newPump(master, output, ended)}
}

// Resize sets the size of a terminal; the kernel signals its processes.
func (s *Streams) Resize(ctx context.Context, size sandbox.TTY) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	connection, err := s.stdin.SyscallConn()
	if err != nil {
		return fmt.Errorf("resize the terminal: %w", err)
	}
	size = Sized(size)
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
