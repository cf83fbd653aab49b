package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// line is what the guest is asked and told over the socket to it.
type line struct {
	id     string                 // of the sandbox
	gone   chan struct{}          // closed when the sandbox is gone
	reason atomic.Pointer[string] // why it is gone, when the runner ended it

	sending chan struct{} // holds one token while a goroutine sends a message

	mu      sync.Mutex   // guards what follows
	conn    *wire.Conn   // replaced with the guest, by the holder of the token
	wake    func() error // replaces a guest that a snapshot has ended; nil while there is one. The holder of the token sets it
	next    int64
	waiting map[int64]chan reply
	running map[int64]*process
	isGone  bool
	watch   watch
}

type reply struct {
	failure guest.Failure
	body    *wire.Decoder
	fds     []int
}

// request sends a message and registers for its reply. It registers p, if any, under the same number. bytes is how much the
// guest has to copy.
func (l *line) request(ctx context.Context, send sending, kind int64, body func(*wire.Encoder), bytes int, p *process, fds ...int) (int64, chan reply, error) {
	answer := make(chan reply, 1)
	l.mu.Lock()
	if l.isGone {
		l.mu.Unlock()
		return 0, nil, l.errGone()
	}
	l.next++
	id := l.next
	l.waiting[id] = answer
	if p != nil {
		l.running[id] = p
	}
	l.watch.asked(len(l.waiting), bytes)
	l.mu.Unlock()
	var e wire.Encoder
	e.Int(kind)
	e.Int(id)
	if body != nil {
		body(&e)
	}
	if err := send(ctx, e.Bytes, fds...); err != nil {
		l.forget(id)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrClosed) {
			return 0, nil, l.errGone()
		}
		return 0, nil, err
	}
	return id, answer, nil
}

// sending sends a message.
type sending func(ctx context.Context, message []byte, fds ...int) error

// send waits for its turn and for room in the socket, until ctx ends: a guest that does not read must not block the caller
// longer.
func (l *line) send(ctx context.Context, message []byte, fds ...int) error {
	if err := l.turn(ctx); err != nil {
		return err
	}
	defer func() { <-l.sending }()
	if l.wake != nil {
		if err := l.wake(); err != nil {
			return err
		}
	}
	return l.conn.SendContext(ctx, message, fds...)
}

// turn takes the token for sending.
func (l *line) turn(ctx context.Context) error {
	select {
	case l.sending <- struct{}{}:
		return nil
	case <-l.gone:
		return l.errGone()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *line) forget(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
	delete(l.running, id)
}

// call sends a request and waits for the reply. The caller owns the descriptors of the reply.
func (l *line) call(ctx context.Context, kind int64, body func(*wire.Encoder)) (reply, error) {
	return l.copying(ctx, 0, kind, body)
}

// copying is a call for which the guest has to copy a number of bytes, which may take it a while.
func (l *line) copying(ctx context.Context, bytes int, kind int64, body func(*wire.Encoder), fds ...int) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, context.Cause(ctx)
	}
	_, answer, err := l.request(ctx, l.send, kind, body, bytes, nil, fds...)
	if err != nil {
		return reply{}, err
	}
	return l.await(ctx, kind, answer)
}

// await waits for the reply to a request of a kind.
func (l *line) await(ctx context.Context, kind int64, answer chan reply) (reply, error) {
	select {
	case r := <-answer:
		if kind != guest.KindOpen || r.failure.Code != guest.CodeOK {
			wire.CloseAll(r.fds) // a guest that the agent has taken over can send any
			r.fds = nil
		}
		return r, failure(r.failure)
	case <-l.gone:
		return reply{}, l.errGone()
	case <-ctx.Done():
		go discard(answer, l.gone)
		return reply{}, context.Cause(ctx)
	}
}

// discard closes the descriptors of a reply whose caller has gone.
func discard(answer chan reply, gone chan struct{}) {
	select {
	case r := <-answer:
		wire.CloseAll(r.fds)
	case <-gone:
	}
}

// failure turns a guest's failure into the errors of the contract.
func failure(f guest.Failure) error {
	switch f.Code {
	case guest.CodeOK:
		return nil
	case guest.CodeNotRegular:
		return &fs.PathError{Op: f.Op, Path: f.Path, Err: sandbox.ErrNotRegular}
	case guest.CodeNotFound:
		return fmt.Errorf("%s: %w: %w", f.Path, sandbox.ErrNotFound, syscall.Errno(f.Errno))
	default:
		return &fs.PathError{Op: f.Op, Path: f.Path, Err: syscall.Errno(f.Errno)}
	}
}

func (l *line) errGone() error {
	if reason := l.reason.Load(); reason != nil {
		return fmt.Errorf("sandbox %s: %w: %s", l.id, sandbox.ErrGone, *reason)
	}
	return fmt.Errorf("sandbox %s: %w", l.id, sandbox.ErrGone)
}

// sealed reports whether a snapshot has ended the guest, and no request has come since.
func (l *line) sealed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake != nil && !l.isGone
}

// IsLost reports whether the guest is known to be gone.
func (l *line) IsLost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isGone
}

// replaced reports whether a snapshot has ended the guest behind conn.
func (l *line) replaced(conn *wire.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wake == nil && l.conn == conn {
		return false
	}
	_ = conn.Close()
	return true
}

// idle asks the guest whether any command runs. The caller holds the token for sending.
func (l *line) idle(ctx context.Context) error {
	l.mu.Lock()
	busy, conn := len(l.waiting) > 0 || len(l.running) > 0, l.conn
	l.mu.Unlock()
	if busy {
		return sandbox.ErrBusy
	}
	_, answer, err := l.request(ctx, conn.SendContext, guest.KindCount, nil, 0, nil)
	if err != nil {
		return err
	}
	r, err := l.await(ctx, guest.KindCount, answer)
	if err == nil && (r.body.Int() > 0 || r.body.Err() != nil) {
		err = sandbox.ErrBusy
	}
	return err
}
