package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// process is a command at the other end.
type process struct {
	box    *box
	id     uint64
	pid    int
	stdin  *source // nil when there is none
	socket *socket // likewise
	outer  *outerConn
	pumps  []*pump // of what it prints

	mu      sync.Mutex // guards what follows
	waiting int        // for what: its end, and that of each pump
	exit    sandbox.Exit
	err     error
	done    chan struct{} // closed when it has ended and its output is copied
}

// terminal is a process on a terminal.
type terminal struct{ *process }

// Start starts a command at the other end.
func (b *box) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	c := b.client
	p := &process{box: b, id: c.newID(), waiting: 1, done: make(chan struct{})}
	s := start{command: cmd}
	if err := p.plumb(&s, &cmd); err != nil {
		p.unplumb()
		return nil, err
	}
	c.mu.Lock()
	c.processes[p.id] = p
	c.mu.Unlock()
	d, err := b.callAs(ctx, p.id, methodStart, func() { c.tell(methodKill, p.id, 0, 1) }, func(m *message) { s.encode(&m.Encoder) })
	if err != nil {
		c.mu.Lock()
		delete(c.processes, p.id)
		c.mu.Unlock()
		p.unplumb()
		return nil, err
	}
	p.pid = int(d.Int())
	isTerminal := d.Bool()
	if d.Err() != nil {
		c.conn.lose(d.Err())
		p.unplumb()
		return nil, b.errGone()
	}
	p.attend(&cmd)
	// The other end keeps what it needs for Kill until then.
	runtime.AddCleanup(p, func(id uint64) { c.conn.send(frameForget, address{stream: id}, nil) }, p.id)
	if isTerminal {
		return terminal{p}, nil
	}
	return p, nil
}

// plumb makes the ends of a command's channels before it begins.
func (p *process) plumb(s *start, cmd *sandbox.Command) error {
	conn := p.box.client.conn
	if cmd.Stdin != nil {
		s.flags |= hasStdin
		p.stdin = conn.newSource(address{p.id, channelStdin})
	}
	if cmd.TTY != nil {
		s.flags |= hasTTY
	}
	if cmd.Stdout != nil {
		s.flags |= hasStdout
		p.listen(channelStdout, cmd.Stdout)
	}
	switch {
	case cmd.Stderr == nil:
	case sameWriter(cmd.Stdout, cmd.Stderr):
		s.flags |= isMerged
	default:
		s.flags |= hasStderr
		p.listen(channelStderr, cmd.Stderr)
	}
	if !cmd.Socket {
		return nil
	}
	s.flags |= hasSocket
	inner, outer, err := socketPair()
	if err != nil {
		return fmt.Errorf("make a socket: %w", err)
	}
	p.socket = newSocket(conn, p.id, inner)
	p.outer = &outerConn{UnixConn: outer, socket: p.socket}
	return nil
}

func (p *process) listen(channel uint8, writer io.Writer) {
	conn := p.box.client.conn
	at := address{p.id, channel}
	pump := newPump(conn, at, writer, func(bool) { p.step() })
	p.waiting++
	p.pumps = append(p.pumps, pump)
	_ = conn.attach(at, pump) // a connection that has ended fails the call that follows
}

// unplumb gives up the channels of a command that did not start.
func (p *process) unplumb() {
	conn := p.box.client.conn
	for _, pump := range p.pumps {
		conn.detach(pump.at)
		pump.end(true)
	}
	if p.stdin != nil {
		p.stdin.close()
	}
	if p.socket != nil {
		p.socket.abandon()
		_ = p.outer.UnixConn.Close()
	}
}

// attend begins to send, once the command runs.
func (p *process) attend(cmd *sandbox.Command) {
	if p.stdin != nil {
		stdin := p.stdin
		go func() {
			// Nothing waits for a reader that never ends.
			if err := stdin.copyFrom(cmd.Stdin); err != errStopped {
				stdin.end(false)
			}
			stdin.close()
		}()
	}
	if p.socket != nil {
		p.box.sockets.run(p.socket)
	}
}

// step counts what has ended.
func (p *process) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting--; p.waiting == 0 {
		close(p.done)
	}
}

// exited is called by the read loop, after all output has come.
func (p *process) exited(exit sandbox.Exit, err error) {
	p.exit, p.err = exit, err
	for _, pump := range p.pumps {
		p.box.client.conn.detach(pump.at)
		pump.end(false)
	}
	if p.stdin != nil {
		p.stdin.close()
	}
	p.step()
}

// lost ends a command whose sandbox is gone.
func (p *process) lost(err error) {
	p.exited(sandbox.Exit{}, err)
}

func (p *process) PID() int { return p.pid }

func (p *process) Socket() net.Conn {
	if p.socket == nil {
		return nil
	}
	return p.outer
}

func (p *process) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	default:
	}
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return sandbox.Exit{}, context.Cause(ctx)
	}
}

func (p *process) Kill(ctx context.Context, grace time.Duration) error {
	err := p.call(ctx, methodKill, func(e *wire.Encoder) {
		e.Int(int64(grace))
		e.Bool(false)
	})
	if errors.Is(err, sandbox.ErrGone) {
		return nil // and so is the command
	}
	return err
}

func (t terminal) Resize(ctx context.Context, size sandbox.TTY) error {
	return t.call(ctx, methodResize, func(e *wire.Encoder) { encodeSize(e, size) })
}

// call asks for something about this command.
func (p *process) call(ctx context.Context, method int64, fill func(*wire.Encoder)) error {
	var m message
	m.Int(int64(p.id))
	fill(&m.Encoder)
	_, err := p.box.client.call(ctx, method, &m)
	runtime.KeepAlive(p)
	return err
}

// sameWriter reports whether both streams go to one writer. Writers of a kind that cannot be compared are not the same.
func sameWriter(a, b io.Writer) (same bool) {
	defer func() { _ = recover() }()
	return a != nil && a == b
}
