package box

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

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

	line
	carried

	closing  sync.Once
	closeErr error
}

// New takes over the socket to a guest.
func New(owner Owner, spec sandbox.Spec, layout sandbox.Layout, socket int, opts Options) (*Box, error) {
	conn, err := wire.Polled(socket)
	if err != nil {
		return nil, err
	}
	opts.Patience = cmp.Or(opts.Patience, defaultPatience)
	b := &Box{
		owner: owner, opts: opts, spec: spec, layout: layout, line: line{
			id: spec.ID, gone: make(chan struct{}), sending: make(chan struct{}, 1), conn: conn,
			waiting: map[int64]chan reply{}, running: map[int64]*process{},
		},
	}
	b.watch = watch{tick: opts.Patience / ticks, look: b.tick}
	b.carried.begin(spec, opts.Logger)
	go b.receive(conn)
	return b, nil
}

// Become gives an unused box of the pool a new spec and layout.
func (b *Box) Become(spec sandbox.Spec, layout sandbox.Layout) {
	b.spec, b.layout, b.id = spec, layout, spec.ID
}

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

// KillAll kills all processes of the sandbox but process 1.
func (b *Box) KillAll(ctx context.Context) error {
	if b.sealed() {
		return nil
	}
	_, err := b.call(ctx, guest.KindKillAll, nil)
	return err
}

// Close has the owner kill the guest; the kernel then kills the rest.
func (b *Box) Close() error {
	b.closing.Do(func() { b.closeErr = errors.Join(b.owner.End(), b.Lost()) })
	return b.closeErr
}
