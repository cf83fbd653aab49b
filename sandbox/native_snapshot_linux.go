package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// nativeSnapshot is a name for layers that the broker keeps.
type nativeSnapshot struct {
	native  *native
	client  *brokerClient
	name    string
	workdir string
	env     map[string]string

	closing sync.Once
	err     error
}

// Close lets the broker forget the layers; sandboxes that stand on them keep them.
func (s *nativeSnapshot) Close() error {
	s.closing.Do(func() { s.err = s.client.tell(broker.KindForget, func(e *wire.Encoder) { e.String(s.name) }) })
	return s.err
}

// nativeBox is a box whose guest the broker can replace.
type nativeBox struct {
	*box
	native *native
}

// Snapshot replaces the guest: what its commands wrote becomes a layer below what those of the next one write.
func (b *nativeBox) Snapshot(ctx context.Context) (Snapshot, error) {
	select {
	case b.sending <- struct{}{}:
	case <-b.gone:
		return nil, b.errGone()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	// Nobody else sends anything as long as the token is ours.
	defer func() { <-b.sending }()
	if err := b.idle(ctx); err != nil {
		return nil, fmt.Errorf("snapshot of sandbox %s: %w", b.spec.ID, err)
	}
	b.mu.Lock()
	if b.isGone {
		b.mu.Unlock()
		return nil, b.errGone()
	}
	b.restart = true
	b.mu.Unlock()
	s := &nativeSnapshot{
		native: b.native, client: b.broker, name: "snapshot-" + strconv.FormatInt(b.native.names.Add(1), 10), workdir: b.layout.Workdir,
		env: b.spec.Env,
	}
	socket, err := b.broker.guest(ctx, broker.KindSnapshot, func(e *wire.Encoder) {
		e.String(b.name)
		e.String(s.name)
	}, b.name)
	var conn *wire.Conn
	if err == nil {
		conn, err = wire.Polled(socket)
	}
	if err != nil {
		b.mu.Lock()
		b.restart = false
		b.mu.Unlock()
		reason := fmt.Sprintf("its snapshot failed: %v", err)
		b.reason.CompareAndSwap(nil, &reason)
		b.lost()
		return nil, errors.Join(fmt.Errorf("snapshot of sandbox %s: %w", b.spec.ID, err), b.errGone())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restart = false
	if b.isGone {
		return nil, errors.Join(b.errGone(), conn.Close())
	}
	b.conn = conn
	go b.receive(conn)
	return s, nil
}

// idle asks the guest whether anything is running. It is called with the token for sending taken.
func (b *box) idle(ctx context.Context) error {
	answer := make(chan reply, 1)
	b.mu.Lock()
	if b.isGone {
		b.mu.Unlock()
		return b.errGone()
	}
	if len(b.waiting) > 0 || len(b.running) > 0 {
		b.mu.Unlock()
		return ErrBusy
	}
	b.next++
	id := b.next
	b.waiting[id] = answer
	b.asked(0)
	conn := b.conn
	b.mu.Unlock()
	var e wire.Encoder
	e.Int(guest.KindCount)
	e.Int(id)
	if err := conn.SendContext(ctx, e.Bytes); err != nil {
		b.forget(id)
		return err
	}
	select {
	case r := <-answer:
		wire.CloseAll(r.fds)
		if err := failure(r.failure); err != nil {
			return err
		}
		if r.body.Int() > 0 || r.body.Err() != nil {
			return ErrBusy
		}
		return nil
	case <-b.gone:
		return b.errGone()
	case <-ctx.Done():
		go b.discard(answer)
		return context.Cause(ctx)
	}
}
