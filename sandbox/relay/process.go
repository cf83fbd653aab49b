package relay

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/wire"
)

// After its message, the answer to a start is a sequence of pieces, each after its kind and its length.
const (
	pieceStdout = iota + 1
	pieceStderr
	pieceExit // the last: a message
	pieceHead = 5
	maxPiece  = 32 << 10
)

var pieces = sync.Pool{New: func() any { b := make([]byte, pieceHead+maxPiece); return &b }}

// process is a command on the server.
type process struct {
	box    *remote
	id     int64
	pid    int
	socket net.Conn // nil when there is none

	command.Ending
}

// terminal is a process on a terminal.
type terminal struct{ *process }

// Start starts a command on the server. Closing the sandbox cancels the request.
func (b *remote) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	m := b.about()
	m.Add(startOf(&cmd))
	input, stdin := io.Pipe()
	var rest io.ReadCloser
	if cmd.Stdin != nil {
		rest = input
	}
	h, d, err := b.client.hold(ctx, b.commands, methodStart, m, rest)
	if err != nil && b.commands.Err() != nil {
		return nil, b.errGone()
	}
	if err != nil {
		return nil, err
	}
	p := &process{box: b, id: d.Int(), pid: int(d.Int()), Ending: command.NewEnding()}
	isTerminal := d.Bool()
	err = b.malformed(d.Err())
	if err == nil && cmd.Socket {
		p.socket, err = b.carry(p.id)
	}
	if err != nil {
		h.end()
		return nil, err
	}
	if cmd.Stdin != nil {
		go func() {
			// Wait does not wait for this goroutine: the reader may never end.
			_, _ = io.Copy(stdin, cmd.Stdin)
			_ = stdin.Close()
		}()
	}
	go p.follow(h, &cmd)
	// The server keeps what Kill needs until then.
	runtime.AddCleanup(p, func(id int64) { go b.forget(id) }, p.id)
	if isTerminal {
		return terminal{p}, nil
	}
	return p, nil
}

func (b *remote) forget(id int64) {
	m := b.about()
	m.Int(id)
	_, _ = b.client.call(b.life, methodForget, m)
}

// follow reads the command's output until the command ends.
func (p *process) follow(h *held, cmd *sandbox.Command) {
	defer h.end()
	if err := p.take(bufio.NewReader(h.rest), cmd); err != nil {
		if p.box.commands.Err() == nil {
			p.box.client.link.lose(fmt.Errorf("%w: %w", errBroken, err))
		}
		p.Err = p.box.errGone()
	}
	p.End(&command.Streams{}) // all output has been read before
	toEnd(h.rest)
}

func (p *process) take(in io.Reader, cmd *sandbox.Command) error {
	writers := [...]io.Writer{pieceStdout: cmd.Stdout, pieceStderr: cmd.Stderr}
	var head [pieceHead]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return cut(err)
		}
		kind := head[0]
		if kind == pieceExit {
			d, err := readMessage(in, maxPiece)
			if err != nil {
				return err
			}
			if err := decodeJSON(d, &p.Exit); err != nil {
				return err
			}
			p.Err = decodeError(d)
			return d.Err()
		}
		length := binary.BigEndian.Uint32(head[1:])
		if length > maxPiece || int(kind) >= len(writers) || writers[kind] == nil {
			return fmt.Errorf("%w: a piece of kind %d with %d bytes", wire.ErrMalformed, kind, length)
		}
		if err := takePiece(in, int(length), &writers[kind]); err != nil {
			return err
		}
	}
}

func takePiece(in io.Reader, length int, to *io.Writer) error {
	chunk := pieces.Get().(*[]byte)
	defer pieces.Put(chunk)
	piece := (*chunk)[:length]
	if _, err := io.ReadFull(in, piece); err != nil {
		return cut(err)
	}
	if _, err := (*to).Write(piece); err != nil {
		*to = io.Discard // the writer failed; the command goes on
	}
	return nil
}

func (p *process) PID() int { return p.pid }

func (p *process) Socket() net.Conn { return p.socket }

func (p *process) Kill(ctx context.Context, grace time.Duration) error {
	m := p.about()
	m.Int(int64(grace))
	err := p.call(ctx, methodKill, m)
	if errors.Is(err, sandbox.ErrGone) {
		return nil // the command has ended, too
	}
	return err
}

func (t terminal) Resize(ctx context.Context, size sandbox.TTY) error {
	m := t.about()
	m.Int(int64(size.Rows))
	m.Int(int64(size.Cols))
	return t.call(ctx, methodResize, m)
}

// about begins a message about this command.
func (p *process) about() *message {
	m := p.box.about()
	m.Int(p.id)
	return m
}

func (p *process) call(ctx context.Context, method string, m *message) error {
	_, err := p.box.client.call(ctx, method, m)
	runtime.KeepAlive(p)
	return err
}
