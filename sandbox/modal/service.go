package modal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	modal "github.com/modal-labs/modal-client/go"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented"
)

const (
	markTag = "trajgen-instance"
	idTag   = "trajgen-id"
	// idleTime is how long a machine stays up when only its main process runs: the agent has ended because its runner is gone.
	idleTime = 5 * time.Minute
	// sealTime is how long Modal keeps a snapshot that is not deleted.
	sealTime = 7 * 24 * time.Hour
	// sealingTime bounds a snapshot.
	sealingTime = 5 * time.Minute
)

// service is the client of Modal.
type service struct {
	config config
	mark   string // of this instance's machines
	client *modal.Client
	app    *modal.App

	mu     sync.Mutex
	images map[string]*image // by reference
}

// connect checks the credentials and finds the app.
func connect(ctx context.Context, settings map[string]string, mark string, logger *slog.Logger) (rented.Service, error) {
	c, err := parse(settings)
	if err != nil {
		return nil, err
	}
	client, err := newClient(c, logger)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	app, err := client.Apps.FromName(ctx, c.app, &modal.AppFromNameParams{CreateIfMissing: true})
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("find the app %s: %w", c.app, explain(err))
	}
	return &service{config: c, mark: mark, client: client, app: app, images: map[string]*image{}}, nil
}

// Create makes a machine with the agent in it.
func (s *service) Create(ctx context.Context, order rented.Order) (rented.Machine, error) {
	if from, ok := order.From.(*seal); ok {
		sb, err := s.create(ctx, from.image, order.Spec)
		if err != nil {
			return nil, err
		}
		return &machine{service: s, sb: sb, use: from.use}, nil
	}
	return s.image(cmp.Or(order.Spec.Image, s.config.image)).machine(ctx, order.Spec)
}

func (s *service) image(reference string) *image {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.images[reference] == nil {
		s.images[reference] = &image{service: s, reference: reference, turn: make(chan struct{}, 1)}
	}
	return s.images[reference]
}

func (s *service) create(ctx context.Context, image *modal.Image, spec sandbox.Spec) (*modal.Sandbox, error) {
	mib := int((spec.Limits.Memory + 1<<20 - 1) >> 20)
	lifetime := s.config.timeout.Truncate(time.Second)
	sb, err := s.client.Sandboxes.Create(ctx, s.app, image, &modal.SandboxCreateParams{
		CPU: spec.Limits.CPUs, CPULimit: spec.Limits.CPUs, MemoryMiB: mib, MemoryLimitMiB: mib,
		Timeout: lifetime, IdleTimeout: idleTime,
		Command:      []string{"sleep", strconv.Itoa(int(lifetime.Seconds()))},
		BlockNetwork: spec.Network != sandbox.NetworkFull,
		Tags:         map[string]string{markTag: s.mark, idTag: spec.ID},
	})
	if err != nil {
		return nil, fmt.Errorf("create a machine: %w", explain(err))
	}
	return sb, nil
}

// Sweep ends all machines of the instance.
func (s *service) Sweep(ctx context.Context) error {
	machines, err := s.client.Sandboxes.List(ctx, &modal.SandboxListParams{AppID: s.app.AppID, Tags: map[string]string{markTag: s.mark}})
	if err != nil {
		return fmt.Errorf("list machines: %w", explain(err))
	}
	var errs []error
	for sb, err := range machines {
		if err != nil {
			errs = append(errs, fmt.Errorf("list machines: %w", explain(err)))
			break
		}
		errs = append(errs, terminate(ctx, sb))
	}
	return errors.Join(errs...)
}

// Close deletes the images that were made for this instance only.
func (s *service) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	defer s.client.Close()
	var errs []error
	for _, i := range s.images {
		if i.layer != nil {
			errs = append(errs, s.delete(ctx, i.layer))
		}
	}
	return errors.Join(errs...)
}

func (s *service) delete(ctx context.Context, image *modal.Image) error {
	if err := s.client.Images.Delete(ctx, image.ImageID, nil); err != nil && !notFound(err) {
		return fmt.Errorf("delete the image %s: %w", image.ImageID, explain(err))
	}
	return nil
}

// terminate ends a machine and waits for its end.
func terminate(ctx context.Context, sb *modal.Sandbox) error {
	defer sb.Detach()
	if _, err := sb.Terminate(ctx, &modal.SandboxTerminateParams{Wait: true}); err != nil && !notFound(err) {
		return fmt.Errorf("terminate %s: %w", sb.SandboxID, explain(err))
	}
	return nil
}
