package box

import (
	"context"
	"errors"
	"fmt"

	"trajgen/sandbox/internal/wire"
)

// Replace has another guest take the place of the box's, for a snapshot: it calls begin, which returns the socket to the new
// guest, while no command runs and no other request is in flight. When the guest cannot be replaced, the box is lost.
func (b *Box) Replace(ctx context.Context, begin func() (socket int, err error)) error {
	select {
	case b.sending <- struct{}{}:
	case <-b.gone:
		return b.errGone()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// No other goroutine sends anything while we hold the token.
	defer func() { <-b.sending }()
	if err := b.idle(ctx); err != nil {
		return fmt.Errorf("snapshot of sandbox %s: %w", b.spec.ID, err)
	}
	b.mu.Lock()
	if b.isGone {
		b.mu.Unlock()
		return b.errGone()
	}
	b.restart = true
	b.mu.Unlock()
	socket, err := begin()
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
		return errors.Join(fmt.Errorf("snapshot of sandbox %s: %w", b.spec.ID, err), b.errGone())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.restart = false
	if b.isGone {
		return errors.Join(b.errGone(), conn.Close())
	}
	b.conn = conn
	go b.receive(conn)
	return nil
}
