package native

import (
	"archive/tar"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/wire"
)

// snapshot names layers that the broker keeps.
type snapshot struct {
	backend *backend
	client  *brokerClient
	name    string
	workdir string
	env     map[string]string

	closing sync.Once
	err     error
}

// Close makes the broker forget the layers; sandboxes that were opened from them keep them.
func (s *snapshot) Close() error {
	s.closing.Do(func() { s.err = s.client.end(broker.KindForget, s.name) })
	return s.err
}

// Layer implements sandbox.Layered.
func (s *snapshot) Layer(ctx context.Context, visit func(*tar.Header, io.Reader) error) error {
	pipe, err := s.client.guest(ctx, broker.KindLayer, func(e *wire.Encoder) { e.String(s.name) }, s.name)
	if err != nil {
		return err
	}
	stream := os.NewFile(uintptr(pipe), "layer")
	defer stream.Close()
	reader := tar.NewReader(stream)
	for context.Cause(ctx) == nil {
		header, err := reader.Next()
		if err != nil {
			return fmt.Errorf("read a layer: %w", cmp.Or(err, io.ErrUnexpectedEOF))
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			if said := header.PAXRecords[broker.LayerEnd]; said != broker.LayerWhole {
				return fmt.Errorf("read a layer: %s", said)
			}
			return nil
		}
		if err := visit(header, reader); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// Snapshot ends the guest: what its commands wrote becomes a layer below what the next guest's commands write.
func (b *confined) Snapshot(ctx context.Context) (sandbox.Snapshot, error) {
	s := &snapshot{
		backend: b.backend, client: b.client, name: "snapshot-" + strconv.FormatInt(b.backend.names.Add(1), 10),
		workdir: b.plan.layout.Workdir, env: b.plan.spec.Env,
	}
	seal := func() error {
		_, err := b.client.wait(ctx, broker.KindSnapshot, func(e *wire.Encoder) {
			e.String(b.name)
			e.String(s.name)
		}, b.name, 0)
		return err
	}
	// It does not end with a request that wakes the guest: others would find the sandbox lost.
	wake := func() (socket int, err error) {
		return b.client.guest(context.WithoutCancel(ctx), broker.KindWake, func(e *wire.Encoder) { e.String(b.name) }, b.name)
	}
	err := b.Seal(ctx, seal, wake)
	if err != nil {
		return nil, err
	}
	return s, nil
}
