package ssh

import (
	"context"
	"errors"
	"sync"

	"trajgen/sandbox"
)

// box is a sandbox on a host, counted there and listed here.
type box struct {
	sandbox.Sandbox
	backend *backend
	host    *host
	id      string

	closing sync.Once
	err     error
}

// Close ends the sandbox. When the connection is lost it has ended already.
func (b *box) Close() error {
	b.closing.Do(func() {
		b.err = errors.Join(b.Sandbox.Close(), b.backend.forget(b))
	})
	return b.err
}

func (b *backend) forget(box *box) error {
	box.host.leave()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.boxes, box.id)
	if b.closed { // and the list with it
		return nil
	}
	return b.state.Remove(box.id)
}

// dressed shows what else the sandbox can do.
func (b *box) dressed() sandbox.Sandbox {
	inner, forks := b.Sandbox.(sandbox.Snapshotter)
	traffic, counts := b.Sandbox.(sandbox.Traffic)
	fork := forkable{box: b, inner: inner}
	switch {
	case forks && counts:
		return struct {
			forkable
			sandbox.Traffic
		}{fork, traffic}
	case forks:
		return fork
	case counts:
		return struct {
			*box
			sandbox.Traffic
		}{b, traffic}
	}
	return b
}

// forkable is a box whose snapshots remember where they are.
type forkable struct {
	*box
	inner sandbox.Snapshotter
}

type snapshot struct {
	sandbox.Snapshot
	host *host
}

func (f forkable) Snapshot(ctx context.Context) (sandbox.Snapshot, error) {
	s, err := f.inner.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &snapshot{Snapshot: s, host: f.host}, nil
}
