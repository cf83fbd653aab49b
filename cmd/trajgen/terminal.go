package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"trajgen/sandbox"
)

// lentTerminal passes the user's terminal to a command in a sandbox: all keys go to the command unchanged, an interrupt, too.
type lentTerminal struct {
	file   *os.File // nil when standard input is none
	before *term.State
}

func takeTerminal(in io.Reader) (*lentTerminal, error) {
	file, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return &lentTerminal{}, nil
	}
	before, err := term.MakeRaw(int(file.Fd()))
	return &lentTerminal{file: file, before: before}, err
}

func (t *lentTerminal) giveBack() {
	if t.file != nil {
		_ = term.Restore(int(t.file.Fd()), t.before)
	}
}

func (t *lentTerminal) size() sandbox.TTY {
	if t.file != nil {
		if cols, rows, err := term.GetSize(int(t.file.Fd())); err == nil {
			return sandbox.TTY{Rows: uint16(rows), Cols: uint16(cols)}
		}
	}
	return sandbox.TTY{Rows: 24, Cols: 80}
}

// follow tells the command when the terminal changes its size, until the returned function is called.
func (t *lentTerminal) follow(ctx context.Context, process sandbox.Process) (stop func()) {
	lent, ok := process.(sandbox.Terminal)
	if t.file == nil || !ok {
		return func() {}
	}
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
				_ = lent.Resize(ctx, t.size())
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(done)
	}
}
