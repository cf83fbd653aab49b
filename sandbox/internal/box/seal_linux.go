package box

import (
	"context"
	"errors"
	"fmt"

	"trajgen/sandbox/internal/wire"
)

// Seal ends the box's guest, for a snapshot: it calls seal while no command runs and no other request is in flight. The next
// message to the guest calls wake, which returns the socket to another one: a box that is only closed after its snapshot needs
// none. When either fails, the box is lost.
func (b *Box) Seal(ctx context.Context, seal func() error, wake func() (socket int, err error)) error {
	if err := b.turn(ctx); err != nil {
		return err
	}
	// No other goroutine sends anything while we hold the token.
	defer func() { <-b.sending }()
	if b.wake != nil {
		if err := b.wake(); err != nil {
			return err
		}
	}
	if err := b.idle(ctx); err != nil {
		return fmt.Errorf("snapshot of sandbox %s: %w", b.spec.ID, err)
	}
	b.mu.Lock()
	if b.isGone {
		b.mu.Unlock()
		return b.errGone()
	}
	b.wake = func() error { return b.begin(wake) }
	b.mu.Unlock()
	if err := seal(); err != nil {
		return b.giveUp(fmt.Errorf("snapshot of sandbox %s: %w", b.spec.ID, err))
	}
	return nil
}

// begin starts the guest that follows a sealed one. The caller holds the token.
func (b *Box) begin(wake func() (socket int, err error)) error {
	socket, err := wake()
	var conn *wire.Conn
	if err == nil {
		conn, err = wire.Polled(socket)
	}
	if err != nil {
		return b.giveUp(fmt.Errorf("start sandbox %s again after its snapshot: %w", b.spec.ID, err))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isGone {
		return errors.Join(b.errGone(), conn.Close())
	}
	b.conn, b.wake = conn, nil
	go b.receive(conn)
	return nil
}

// giveUp ends a box that is left without a guest.
func (b *Box) giveUp(err error) error {
	reason := err.Error()
	b.reason.CompareAndSwap(nil, &reason)
	b.lost()
	return errors.Join(err, b.errGone())
}
