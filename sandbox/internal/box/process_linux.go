package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// killTime bounds the kill of a command whose caller has gone.
const killTime = 3 * time.Minute

// Start sends the command's ends of its pipes to the guest.
func (b *Box) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	streams, ends, err := command.Plumb(&cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", commandName(&cmd), err)
	}
	defer ends.Close()
	defer streams.Settle()
	p := &process{box: b, streams: streams, Ending: command.NewEnding()}
	request, fds, err := p.describe(&cmd, ends)
	if err == nil {
		var answer chan reply
		p.id, answer, err = b.request(ctx, b.send, guest.KindStart, func(e *wire.Encoder) { e.Add(request) }, 0, p, fds...)
		if err == nil {
			err = p.started(ctx, answer, &cmd)
		}
	}
	if err != nil {
		streams.Close()
		if p.socket != nil {
			_ = p.socket.Close()
		}
		return nil, err
	}
	streams.Start()
	if cmd.TTY != nil {
		return terminal{p}, nil
	}
	return p, nil
}

// describe makes the request for a command, and the list of the descriptors that go with it.
func (p *process) describe(cmd *sandbox.Command, ends *command.Ends) (*guest.Start, []int, error) {
	b, dir := p.box, cmd.Dir
	if dir == "" {
		dir = b.layout.Workdir
	} else if dir[0] != '/' {
		dir = b.layout.Workdir + "/" + dir
	}
	s := &guest.Start{Args: cmd.Args, Dir: dir, Env: command.Environment(b.layout, b.spec.Env, cmd, dir)}
	if cmd.Helper != "" {
		s.Helper, s.Args = true, append([]string{cmd.Helper}, cmd.Args...)
	}
	var fds []int
	give := func(flag int64, file *os.File) {
		if file != nil {
			s.FDs |= flag
			// Fd makes this end blocking, as programs expect of their standard streams.
			fds = append(fds, int(file.Fd()))
		}
	}
	if cmd.TTY != nil {
		size := command.Sized(*cmd.TTY)
		s.FDs, s.Rows, s.Cols = guest.FDTerminal, int64(size.Rows), int64(size.Cols)
	}
	give(guest.FDStdin, ends.Stdin)
	give(guest.FDStdout, ends.Stdout)
	if ends.Stderr != nil && ends.Stderr == ends.Stdout {
		s.FDs |= guest.FDMerged
	} else {
		give(guest.FDStderr, ends.Stderr)
	}
	if cmd.Socket {
		var err error
		if p.socket, ends.Socket, err = command.SocketPair(); err != nil {
			return nil, nil, fmt.Errorf("make a socket for %s: %w", commandName(cmd), err)
		}
		give(guest.FDSocket, ends.Socket)
	}
	return s, fds, nil
}

// started waits for the answer to the request.
func (p *process) started(ctx context.Context, answer chan reply, cmd *sandbox.Command) error {
	b := p.box
	select {
	case r := <-answer:
		if err := failure(r.failure); err != nil {
			wire.CloseAll(r.fds)
			b.forget(p.id)
			return err
		}
		p.pid = int(r.body.Int())
		if cmd.TTY != nil {
			return p.takeTerminal(r.fds, cmd.Stdout)
		}
		wire.CloseAll(r.fds)
		return nil
	case <-b.gone:
		return b.errGone()
	case <-ctx.Done():
		// The guest may have started it all the same.
		go func() {
			select {
			case r := <-answer:
				wire.CloseAll(r.fds)
				if r.failure.Code != guest.CodeOK {
					b.forget(p.id)
					return
				}
			case <-b.gone:
				return
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
			defer cancel()
			_ = p.Kill(ctx, 0)
		}()
		return context.Cause(ctx)
	}
}

// takeTerminal takes the runner's end of a terminal from a guest. The guest is not trusted: any other kind of file could block
// us.
func (p *process) takeTerminal(fds []int, output io.Writer) error {
	if len(fds) != 1 || !guest.IsMaster(fds[0]) {
		wire.CloseAll(fds)
		ctx, cancel := context.WithTimeout(context.Background(), killTime)
		defer cancel()
		return errors.Join(fmt.Errorf("take a terminal: %w", wire.ErrMalformed), p.Kill(ctx, 0))
	}
	master, err := command.TakeTerminal(fds[0])
	if err != nil {
		return err
	}
	p.streams.Attach(master, output, p.Ended)
	return nil
}

func commandName(cmd *sandbox.Command) string {
	if cmd.Helper != "" {
		return cmd.Helper
	}
	return cmd.Args[0]
}

// process is a command of a box.
type process struct {
	box     *Box
	id      int64
	pid     int
	streams *command.Streams
	socket  *net.UnixConn // nil when there is none

	command.Ending
}

// terminal is a process on a terminal.
type terminal struct{ *process }

func (t terminal) Resize(ctx context.Context, size sandbox.TTY) error {
	return t.streams.Resize(ctx, size)
}

func (p *process) PID() int { return p.pid }

func (p *process) Socket() net.Conn {
	if p.socket == nil {
		return nil
	}
	return p.socket
}

func (p *process) exited(x guest.Exit) {
	p.Exit = sandbox.Exit{Code: int(x.Code), Signal: int(x.Signal), OOM: x.Limits&guest.LimitMemory != 0, Limits: limitNames(x.Limits), CPU: time.Duration(x.CPU)}
	p.End(p.streams)
}

// limitNames returns the names of the limits that a guest has reported, sorted.
func limitNames(limits int64) []string {
	var names []string
	for _, l := range []struct {
		bit  int64
		name string
	}{
		{guest.LimitCPU, sandbox.LimitCPU}, {guest.LimitDisk, sandbox.LimitDisk}, {guest.LimitInodes, sandbox.LimitInodes},
		{guest.LimitMachine, sandbox.LimitMachine}, {guest.LimitMemory, sandbox.LimitMemory}, {guest.LimitProcesses, sandbox.LimitProcesses},
	} {
		if limits&l.bit != 0 {
			names = append(names, l.name)
		}
	}
	return names
}

// lost requires that the caller holds the box's lock.
func (p *process) lost() {
	p.Err = p.box.errGone()
	p.End(p.streams)
}

func (p *process) Kill(ctx context.Context, grace time.Duration) error {
	if grace > 0 {
		if err := p.signal(ctx, unix.SIGTERM); err != nil {
			return err
		}
		if err := p.Within(ctx, grace); err != nil {
			return err
		}
	}
	// Even when the command itself is gone, its descendants may live.
	if err := p.signal(ctx, unix.SIGKILL); err != nil {
		return err
	}
	// The guest answers only when the command is gone; its end still has to arrive.
	patience := time.NewTimer(p.box.opts.Patience)
	defer patience.Stop()
	select {
	case <-p.Ended:
		return nil
	case <-patience.C:
		p.box.silent("its guest did not tell how a killed command ended")
		return nil // it ended with the sandbox
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *process) signal(ctx context.Context, sig unix.Signal) error {
	_, err := p.box.call(ctx, guest.KindKill, func(e *wire.Encoder) {
		e.Int(p.id)
		e.Int(int64(sig))
	})
	if errors.Is(err, sandbox.ErrGone) {
		return nil // the command has ended, too
	}
	return err
}
