package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/egress"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// owner is what a box was opened by.
type owner interface {
	// forget hears of a box that is being closed.
	forget(*box)
	// end ends what the box is a socket to, and returns when all of it is gone.
	end(*box) error
	patience() time.Duration
	log() *slog.Logger
}

// box is a sandbox that is a socket to its guest.
type box struct {
	owner  owner
	broker *brokerClient // nil without one
	name   string        // by which the broker knows it
	spec   Spec
	layout Layout
	gone   chan struct{} // closed when the sandbox is

	sending chan struct{} // holds one token while a message is being sent

	mu      sync.Mutex // guards what follows
	conn    *wire.Conn // replaced, with the token taken, when the guest is
	next    int64
	waiting map[int64]chan reply
	running map[int64]*nativeProcess
	isGone  bool
	restart bool // the guest is being replaced
	watch   watch

	carrier *egress.Server         // nil when nothing is carried
	lacks   atomic.Pointer[string] // why not all connections are, when they are not

	reason   atomic.Pointer[string] // why it is gone, when it was we who ended it
	closing  sync.Once
	closeErr error
}

type reply struct {
	failure guest.Failure
	body    *wire.Decoder
	fds     []int
}

func newBox(o owner, client *brokerClient, spec Spec, layout Layout, socket int) (*box, error) {
	conn, err := wire.Polled(socket)
	if err != nil {
		return nil, err
	}
	b := &box{
		owner: o, broker: client, spec: spec, layout: layout, conn: conn, gone: make(chan struct{}), sending: make(chan struct{}, 1),
		waiting: map[int64]chan reply{}, running: map[int64]*nativeProcess{},
	}
	b.carrier = newCarrier(o, spec)
	go b.receive(conn)
	return b, nil
}

// Layout is the same in all native sandboxes, but for the working directory.
func (b *box) Layout() Layout { return b.layout }

// Files are served by the guest.
func (b *box) Files() Files { return nativeFiles{b} }

func (b *box) receive(conn *wire.Conn) {
	for {
		message, fds, err := conn.Recv()
		if err != nil {
			if !b.replaced(conn) {
				b.lost()
			}
			return
		}
		d := wire.NewDecoder(message)
		switch kind, id := d.Int(), d.Int(); kind {
		case guest.KindReply:
			r := reply{body: d, fds: fds}
			r.failure.Decode(d)
			b.mu.Lock()
			waiting := b.waiting[id]
			delete(b.waiting, id)
			b.heard()
			b.mu.Unlock()
			if waiting == nil {
				wire.CloseAll(fds)
				continue
			}
			waiting <- r
		case guest.KindExit:
			wire.CloseAll(fds)
			var x guest.Exit
			x.Decode(d)
			b.mu.Lock()
			p := b.running[id]
			delete(b.running, id)
			b.mu.Unlock()
			if p != nil {
				p.exited(x)
			}
		case guest.KindListeners:
			b.carry(d, fds)
		default:
			wire.CloseAll(fds)
		}
	}
}

// replaced says whether another guest takes the place of the one that was behind conn.
func (b *box) replaced(conn *wire.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.restart && b.conn == conn {
		return false
	}
	_ = conn.Close()
	return true
}

// lost ends all that waits for the guest.
func (b *box) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isGone {
		return
	}
	b.isGone = true
	if b.carrier != nil {
		go func() { _ = b.stopCarrying() }() // who ends the sandbox waits for that
	}
	b.watch.stop()
	close(b.gone)
	_ = b.conn.Close()
	for id, p := range b.running {
		delete(b.running, id)
		p.lost()
	}
}

func (b *box) isLost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isGone
}

func (b *box) errGone() error {
	if reason := b.reason.Load(); reason != nil {
		return fmt.Errorf("sandbox %s: %w: %s", b.spec.ID, ErrGone, *reason)
	}
	return fmt.Errorf("sandbox %s: %w", b.spec.ID, ErrGone)
}

// request sends a message and registers for its reply. process, when given, is registered under the same number. bytes
// is how much the guest is asked to copy.
func (b *box) request(ctx context.Context, kind int64, body func(*wire.Encoder), bytes int, process *nativeProcess, fds ...int) (int64, chan reply, error) {
	answer := make(chan reply, 1)
	b.mu.Lock()
	if b.isGone {
		b.mu.Unlock()
		return 0, nil, b.errGone()
	}
	b.next++
	id := b.next
	b.waiting[id] = answer
	if process != nil {
		b.running[id] = process
	}
	b.asked(bytes)
	b.mu.Unlock()
	var e wire.Encoder
	e.Int(kind)
	e.Int(id)
	if body != nil {
		body(&e)
	}
	if err := b.send(ctx, e.Bytes, fds); err != nil {
		b.forget(id)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrClosed) {
			return 0, nil, b.errGone()
		}
		return 0, nil, err
	}
	return id, answer, nil
}

// send waits for its turn and for room in the socket: a guest that does not listen must not hold up the caller longer
// than ctx.
func (b *box) send(ctx context.Context, message []byte, fds []int) error {
	select {
	case b.sending <- struct{}{}:
	case <-b.gone:
		return b.errGone()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-b.sending }()
	return b.conn.SendContext(ctx, message, fds...)
}

func (b *box) forget(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, id)
	delete(b.running, id)
}

// call sends a request and waits for the reply. The descriptors of a reply are the caller's.
func (b *box) call(ctx context.Context, kind int64, body func(*wire.Encoder)) (reply, error) {
	return b.copying(ctx, 0, kind, body)
}

// copying is a call that asks the guest to copy a number of bytes, which may take it a while.
func (b *box) copying(ctx context.Context, bytes int, kind int64, body func(*wire.Encoder), fds ...int) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, context.Cause(ctx)
	}
	_, answer, err := b.request(ctx, kind, body, bytes, nil, fds...)
	if err != nil {
		return reply{}, err
	}
	select {
	case r := <-answer:
		if kind != guest.KindOpen || r.failure.Code != guest.CodeOK {
			wire.CloseAll(r.fds) // a guest in the wrong hands can send any
			r.fds = nil
		}
		return r, failure(r.failure)
	case <-b.gone:
		return reply{}, b.errGone()
	case <-ctx.Done():
		go b.discard(answer)
		return reply{}, context.Cause(ctx)
	}
}

// discard takes a reply that nobody waits for any more.
func (b *box) discard(answer chan reply) {
	select {
	case r := <-answer:
		wire.CloseAll(r.fds)
	case <-b.gone:
	}
}

// failure turns what a guest says into what the interface promises.
func failure(f guest.Failure) error {
	switch f.Code {
	case guest.CodeOK:
		return nil
	case guest.CodeNotRegular:
		return &fs.PathError{Op: f.Op, Path: f.Path, Err: ErrNotRegular}
	case guest.CodeNotFound:
		return fmt.Errorf("%s: %w: %w", f.Path, ErrNotFound, syscall.Errno(f.Errno))
	default:
		return &fs.PathError{Op: f.Op, Path: f.Path, Err: syscall.Errno(f.Errno)}
	}
}

// KillAll leaves process 1 alone in the sandbox.
func (b *box) KillAll(ctx context.Context) error {
	_, err := b.call(ctx, guest.KindKillAll, nil)
	return err
}

// Close kills the guest, and with it the kernel kills the rest.
func (b *box) Close() error {
	b.owner.forget(b)
	return b.end()
}

func (b *box) end() error {
	b.closing.Do(func() {
		b.closeErr = b.owner.end(b)
		b.lost()
		b.closeErr = errors.Join(b.closeErr, b.stopCarrying())
	})
	return b.closeErr
}
