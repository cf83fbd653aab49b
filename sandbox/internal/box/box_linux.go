package box

import (
	"cmp"
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

	"trajgen/sandbox"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// Owner is the backend's part of a box.
type Owner interface {
	// End ends the guest with all that belongs to it, and returns when it is gone. It is called once.
	End() error
}

// Options are what all boxes of a backend have in common.
type Options struct {
	// Patience is how long a guest may leave requests unanswered; a minute when zero.
	Patience time.Duration
	Logger   *slog.Logger
}

// Box is a sandbox on the other end of a socket to its guest.
type Box struct {
	owner  Owner
	opts   Options
	spec   sandbox.Spec
	layout sandbox.Layout
	gone   chan struct{} // closed when the sandbox is gone

	sending chan struct{} // holds one token while a goroutine sends a message

	mu      sync.Mutex // guards what follows
	conn    *wire.Conn // replaced with the guest, by the holder of the token
	next    int64
	waiting map[int64]chan reply
	running map[int64]*process
	isGone  bool
	restart bool // the guest is being replaced
	watch   watch

	carried

	reason   atomic.Pointer[string] // why it is gone, when the runner ended it
	closing  sync.Once
	closeErr error
}

type reply struct {
	failure guest.Failure
	body    *wire.Decoder
	fds     []int
}

// New takes over the socket to a guest.
func New(owner Owner, spec sandbox.Spec, layout sandbox.Layout, socket int, opts Options) (*Box, error) {
	conn, err := wire.Polled(socket)
	if err != nil {
		return nil, err
	}
	opts.Patience = cmp.Or(opts.Patience, defaultPatience)
	b := &Box{
		owner: owner, opts: opts, spec: spec, layout: layout, conn: conn, gone: make(chan struct{}), sending: make(chan struct{}, 1),
		watch: watch{tick: opts.Patience / ticks}, waiting: map[int64]chan reply{}, running: map[int64]*process{},
	}
	b.carried.begin(spec, opts.Logger)
	go b.receive(conn)
	return b, nil
}

// Become gives an unused box of the pool a new spec and layout.
func (b *Box) Become(spec sandbox.Spec, layout sandbox.Layout) { b.spec, b.layout = spec, layout }

// Layout implements Sandbox.
func (b *Box) Layout() sandbox.Layout { return b.layout }

// Files are served by the guest.
func (b *Box) Files() sandbox.Files { return files{b} }

func (b *Box) receive(conn *wire.Conn) {
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
			d.Take(&r.failure)
			b.mu.Lock()
			waiting := b.waiting[id]
			delete(b.waiting, id)
			b.watch.answered(len(b.waiting))
			b.mu.Unlock()
			if waiting == nil {
				wire.CloseAll(fds)
				continue
			}
			waiting <- r
		case guest.KindExit:
			wire.CloseAll(fds)
			var x guest.Exit
			d.Take(&x)
			b.mu.Lock()
			p := b.running[id]
			delete(b.running, id)
			b.mu.Unlock()
			if p != nil {
				p.exited(x)
			}
		case guest.KindListeners:
			b.carried.take(d, fds)
		default:
			wire.CloseAll(fds)
		}
	}
}

// replaced reports whether another guest takes the place of the one behind conn.
func (b *Box) replaced(conn *wire.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.restart && b.conn == conn {
		return false
	}
	_ = conn.Close()
	return true
}

// lost ends all calls that wait for the guest.
func (b *Box) lost() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isGone {
		return
	}
	b.isGone = true
	if b.carried.server != nil {
		go func() { _ = b.carried.end() }() // the goroutine that ends the sandbox waits for it
	}
	b.watch.stop()
	close(b.gone)
	_ = b.conn.Close()
	for id, p := range b.running {
		delete(b.running, id)
		p.lost()
	}
}

// Lost ends all calls that wait for a guest that its owner knows to be gone, and its connections.
func (b *Box) Lost() error {
	b.lost()
	return b.carried.end()
}

// IsLost reports whether the guest is known to be gone.
func (b *Box) IsLost() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isGone
}

func (b *Box) errGone() error {
	if reason := b.reason.Load(); reason != nil {
		return fmt.Errorf("sandbox %s: %w: %s", b.spec.ID, sandbox.ErrGone, *reason)
	}
	return fmt.Errorf("sandbox %s: %w", b.spec.ID, sandbox.ErrGone)
}

// request sends a message and registers for its reply. It registers p, if any, under the same number. bytes is how much the
// guest has to copy.
func (b *Box) request(ctx context.Context, send sending, kind int64, body func(*wire.Encoder), bytes int, p *process, fds ...int) (int64, chan reply, error) {
	answer := make(chan reply, 1)
	b.mu.Lock()
	if b.isGone {
		b.mu.Unlock()
		return 0, nil, b.errGone()
	}
	b.next++
	id := b.next
	b.waiting[id] = answer
	if p != nil {
		b.running[id] = p
	}
	b.watch.asked(len(b.waiting), bytes, b.tick)
	b.mu.Unlock()
	var e wire.Encoder
	e.Int(kind)
	e.Int(id)
	if body != nil {
		body(&e)
	}
	if err := send(ctx, e.Bytes, fds...); err != nil {
		b.forget(id)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, os.ErrClosed) {
			return 0, nil, b.errGone()
		}
		return 0, nil, err
	}
	return id, answer, nil
}

// sending sends a message.
type sending func(ctx context.Context, message []byte, fds ...int) error

// send waits for its turn and for room in the socket, until ctx ends: a guest that does not read must not block the caller
// longer.
func (b *Box) send(ctx context.Context, message []byte, fds ...int) error {
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

func (b *Box) forget(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, id)
	delete(b.running, id)
}

// call sends a request and waits for the reply. The caller owns the descriptors of the reply.
func (b *Box) call(ctx context.Context, kind int64, body func(*wire.Encoder)) (reply, error) {
	return b.copying(ctx, 0, kind, body)
}

// copying is a call for which the guest has to copy a number of bytes, which may take it a while.
func (b *Box) copying(ctx context.Context, bytes int, kind int64, body func(*wire.Encoder), fds ...int) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, context.Cause(ctx)
	}
	_, answer, err := b.request(ctx, b.send, kind, body, bytes, nil, fds...)
	if err != nil {
		return reply{}, err
	}
	return b.await(ctx, kind, answer)
}

// await waits for the reply to a request of a kind.
func (b *Box) await(ctx context.Context, kind int64, answer chan reply) (reply, error) {
	select {
	case r := <-answer:
		if kind != guest.KindOpen || r.failure.Code != guest.CodeOK {
			wire.CloseAll(r.fds) // a guest that the agent has taken over can send any
			r.fds = nil
		}
		return r, failure(r.failure)
	case <-b.gone:
		return reply{}, b.errGone()
	case <-ctx.Done():
		go discard(answer, b.gone)
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

// KillAll kills all processes of the sandbox but process 1.
func (b *Box) KillAll(ctx context.Context) error {
	_, err := b.call(ctx, guest.KindKillAll, nil)
	return err
}

// Close has the owner kill the guest; the kernel then kills the rest.
func (b *Box) Close() error {
	b.closing.Do(func() {
		b.closeErr = b.owner.End()
		b.lost()
		b.closeErr = errors.Join(b.closeErr, b.carried.end())
	})
	return b.closeErr
}
