package modal

import (
	"context"
	"fmt"
	"io"

	modal "github.com/modal-labs/modal-client/go"

	"trajgen/sandbox/internal/rented"
)

// machine is a machine of Modal with the agent in it.
type machine struct {
	service *service
	sb      *modal.Sandbox
	use     rented.Image
}

func (m *machine) Image() rented.Image { return m.use }

// Start runs the agent.
func (m *machine) Start(ctx context.Context) (io.ReadWriteCloser, error) {
	process, err := m.sb.Exec(ctx, []string{m.service.config.agent.Path, "trajgen-helper", "agent", "bare"}, nil)
	if err != nil {
		return nil, explain(err)
	}
	return newStream(process), nil
}

// Destroy terminates the machine.
func (m *machine) Destroy(ctx context.Context) error { return terminate(ctx, m.sb) }

// Seal makes Modal keep the machine's file system as an image.
func (m *machine) Seal(ctx context.Context) (rented.Seal, error) {
	image, err := m.sb.SnapshotFilesystem(ctx, &modal.SandboxSnapshotFilesystemParams{Timeout: sealingTime, TTL: sealTime})
	if err != nil {
		return nil, fmt.Errorf("seal the file system: %w", explain(err))
	}
	return &seal{service: m.service, image: image, use: m.use}, nil
}

// seal is such a file system, which includes the agent.
type seal struct {
	service *service
	image   *modal.Image
	use     rented.Image
}

func (s *seal) Delete(ctx context.Context) error { return s.service.delete(ctx, s.image) }
