package desk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"trajgen/pipeline/run"
	"trajgen/sandbox"
)

// Exec runs a command in a sandbox of its own, and returns its exit code. With a tty it runs on a terminal, to which the one
// of its standard input is lent. From when there is a sandbox, signals says when the command is to end.
func Exec(ctx context.Context, choice run.Backend, spec sandbox.Spec, command sandbox.Command, tty bool,
	signals func(context.Context) (_ context.Context, drain <-chan struct{}, stop func())) (code int, err error) {
	backend, err := choice.Open()
	if err != nil {
		return 0, run.AsMistake(err)
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	if err := backend.Offers(spec); err != nil {
		return 0, run.AsMistake(err)
	}
	sb, err := backend.Open(ctx, spec)
	if err != nil {
		return 0, fmt.Errorf("open sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	ctx, drain, stop := signals(ctx)
	defer stop()
	var lent *lentTerminal
	if tty {
		if lent, err = takeTerminal(command.Stdin); err != nil {
			return 0, err
		}
		defer lent.giveBack()
		size := lent.size()
		command.TTY, command.Stderr = &size, nil
	}
	process, err := sb.Start(ctx, command)
	if err != nil {
		return 0, err
	}
	if lent != nil {
		defer lent.follow(ctx, process)()
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() { // the first interrupt ends the command
		select {
		case <-drain:
			_ = process.Kill(context.WithoutCancel(ctx), time.Second)
		case <-ended:
		}
	}()
	exit, err := process.Wait(ctx)
	return exit.Code, err
}

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
