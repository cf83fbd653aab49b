package rented

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
)

// box is a sandbox on a machine of its own.
type box struct {
	sandbox.Sandbox // served by the agent
	backend         *backend
	id              string
	machine         Machine
	client          *relay.Client

	cancel func(error) // cancels the opening; nil when it has ended; guarded by backend.mu

	closing sync.Once
	err     error
}

// begin starts the agent and connects to it.
func (b *box) begin(ctx context.Context, spec sandbox.Spec, from *snapshot) error {
	stream, err := b.machine.Start(ctx)
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	if b.client, err = relay.Dial(ctx, stream, b.backend.relayed()); err != nil {
		return fmt.Errorf("speak to the agent: %w", errors.Join(err, stream.Close()))
	}
	image := b.machine.Image()
	inner := spec
	inner.Image, inner.From = "", nil
	// The service decides what the machine reaches, beside its loopback.
	if inner.Network != sandbox.NetworkNone {
		inner.Network = sandbox.NetworkFull
	}
	inner.Env = maps.Clone(image.Env)
	if inner.Env == nil {
		inner.Env = map[string]string{}
	}
	maps.Copy(inner.Env, spec.Env)
	switch {
	case from != nil:
		inner.Workdir = from.workdir
	case spec.Workdir == "" && image.Workdir != "/" && image.Workdir != "/root":
		inner.Workdir = image.Workdir
	}
	if b.Sandbox, err = b.client.Open(ctx, inner); err != nil {
		return err
	}
	if from != nil {
		// The service's snapshot includes all files.
		return b.Files().Remove(ctx, b.Layout().Tests)
	}
	return nil
}

// Close ends the machine.
func (b *box) Close() error {
	b.closing.Do(func() {
		b.err = b.end()
		b.backend.forget(b)
		if b.err != nil {
			b.backend.lose()
			return
		}
		b.err = b.backend.state.Remove(b.id)
	})
	return b.err
}

// end ends the machine, and then the connection to it.
func (b *box) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	err := b.machine.Destroy(ctx)
	if err != nil {
		err = fmt.Errorf("end the machine of sandbox %s: %w", b.id, err)
	}
	if b.client != nil {
		// The machine is gone, so an error does not matter.
		_ = b.client.Close()
	}
	return err
}

// sealable is a box whose machine can make snapshots.
type sealable struct{ *box }

// Snapshot seals the machine's files.
func (s *sealable) Snapshot(ctx context.Context) (sandbox.Snapshot, error) {
	busy, err := busy(ctx, s.Sandbox)
	if err != nil {
		return nil, fmt.Errorf("snapshot of sandbox %s: %w", s.id, err)
	}
	if busy {
		return nil, fmt.Errorf("snapshot of sandbox %s: %w", s.id, sandbox.ErrBusy)
	}
	seal, err := s.machine.(Sealer).Seal(ctx)
	if err != nil {
		return nil, fmt.Errorf("snapshot of sandbox %s: %w", s.id, err)
	}
	return &snapshot{backend: s.backend, seal: seal, workdir: s.Layout().Workdir}, nil
}

// snapshot is a sealed state of a box.
type snapshot struct {
	backend *backend
	seal    Seal
	workdir string

	closing sync.Once
	err     error
}

// Close deletes what was sealed.
func (s *snapshot) Close() error {
	s.closing.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.err = s.seal.Delete(ctx)
	})
	return s.err
}
