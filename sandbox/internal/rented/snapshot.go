package rented

import (
	"context"
	"fmt"
	"sync"
	"time"

	"trajgen/sandbox"
)

// sealable is a sandbox whose machine can make snapshots.
type sealable struct {
	sandbox.Sandbox
	id      string
	backend *backend
	machine Sealer
}

// Snapshot seals the machine's files.
func (s *sealable) Snapshot(ctx context.Context) (sandbox.Snapshot, error) {
	busy, err := busy(ctx, s.Sandbox)
	if err == nil && busy {
		err = sandbox.ErrBusy
	}
	var seal Seal
	if err == nil {
		seal, err = s.machine.Seal(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of sandbox %s: %w", s.id, err)
	}
	return &snapshot{backend: s.backend, seal: seal, workdir: s.Layout().Workdir, folder: s.Layout().ReadOnly}, nil
}

// snapshot is a sealed state of a sandbox.
type snapshot struct {
	backend *backend
	seal    Seal
	workdir string
	folder  string // the read-only one

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
