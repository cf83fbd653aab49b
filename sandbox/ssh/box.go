package ssh

import (
	"context"
	"errors"
	"sync"

	"trajgen/sandbox"
)

// box is a sandbox on a host, counted for the host and listed in the backend's state.
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
	if b.closed { // the list is closed, too
		return nil
	}
	return b.state.Remove(box.id)
}

// withInterfaces adds the optional interfaces of the sandbox.
func (b *box) withInterfaces() sandbox.Sandbox {
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

// forkable is a box whose snapshots know their host.
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
