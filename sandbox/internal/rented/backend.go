package rented

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/state"
	"trajgen/sandbox/relay"
)

// endTime bounds how long a machine may take to end.
const endTime = time.Minute

// backend opens sandboxes on rented machines.
type backend struct {
	name       string
	guarantees sandbox.Guarantees
	logger     *slog.Logger
	service    Service
	state      *state.Instance

	opening sync.WaitGroup

	mu     sync.Mutex // guards what follows
	boxes  map[string]*box
	closed bool
	stray  bool // there may be machines without a box
}

// open opens a backend. First it rents a machine for the self-test.
func (p Provider) open(opts sandbox.Options) (sandbox.Backend, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	recorded := p.record(opts.Settings)
	service, err := p.Connect(context.Background(), opts.Settings, recorded[mark], opts.Logger)
	if err != nil {
		return nil, err
	}
	instance, err := state.Create(opts.StateDir, state.Owner{Backend: p.Name, PID: os.Getpid(), Settings: recorded})
	if err != nil {
		return nil, errors.Join(err, service.Close())
	}
	b := &backend{name: p.Name, guarantees: p.Guarantees, logger: opts.Logger, service: service, state: instance, boxes: map[string]*box{}}
	b.guarantees.Backend = p.Name
	b.guarantees.Limits = maps.Clone(p.Guarantees.Limits)
	b.guarantees.Missing = slices.Clone(p.Guarantees.Missing)
	if err := b.selfTest(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Guarantees returns what the provider states, corrected by the self-test.
func (b *backend) Guarantees() sandbox.Guarantees { return b.guarantees }

// Open rents a machine.
func (b *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	g := b.guarantees
	spec, err := spec.Complete(g.Network, g.Images)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	from, err := b.source(spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sb := &box{backend: b, id: spec.ID, cancel: cancel}
	if err := b.reserve(sb); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	defer b.opening.Done()
	if err := b.open(ctx, sb, spec, from); err != nil {
		b.forget(sb)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	if _, ok := sb.machine.(Sealer); ok {
		return &sealable{sb}, nil
	}
	return sb, nil
}

// source returns the snapshot that a sandbox is opened from.
func (b *backend) source(spec sandbox.Spec) (*snapshot, error) {
	if spec.From == nil {
		return nil, nil
	}
	from, ok := spec.From.(*snapshot)
	switch {
	case !ok || from.backend != b:
		return nil, errors.New("the snapshot is of another backend")
	case spec.Image != "" || spec.Workdir != "":
		return nil, errors.New("the image and the working directory are those of the snapshot")
	}
	return from, nil
}

func (b *backend) open(ctx context.Context, sb *box, spec sandbox.Spec, from *snapshot) (err error) {
	order := Order{Spec: spec}
	if from != nil {
		order.From = from.seal
	}
	if sb.machine, err = b.service.Create(ctx, order); err != nil {
		if _, none := errors.AsType[None](err); !none {
			b.lose()
		}
		return err
	}
	if err := sb.begin(ctx, spec, from); err != nil {
		return b.undo(sb, err)
	}
	b.mu.Lock()
	closed := b.closed
	sb.cancel = nil
	b.mu.Unlock()
	if closed {
		err = errClosed
	} else {
		err = b.state.Add(sb.id, 0)
	}
	if err != nil {
		return b.undo(sb, err)
	}
	return nil
}

// undo ends a machine whose sandbox could not be opened.
func (b *backend) undo(sb *box, reason error) error {
	err := sb.end()
	if err != nil {
		b.lose()
	}
	return errors.Join(reason, err)
}

// lose notes that there may be a machine without a box.
func (b *backend) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stray = true
}

var errClosed = fmt.Errorf("backend is closed: %w", sandbox.ErrGone)

func (b *backend) reserve(sb *box) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	if _, ok := b.boxes[sb.id]; ok {
		return errors.New("a sandbox of that id is open")
	}
	b.boxes[sb.id] = sb
	b.opening.Add(1)
	return nil
}

func (b *backend) forget(sb *box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.boxes[sb.id] == sb {
		delete(b.boxes, sb.id)
	}
}

// Close ends all machines.
func (b *backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	var open []*box
	for _, sb := range b.boxes {
		if sb.cancel != nil {
			sb.cancel(errClosed)
			continue
		}
		open = append(open, sb)
	}
	b.mu.Unlock()
	errs := make([]error, len(open))
	var wait sync.WaitGroup
	for i, sb := range open {
		wait.Go(func() { errs[i] = sb.Close() })
	}
	wait.Wait()
	b.opening.Wait()
	b.mu.Lock()
	stray := b.stray
	b.mu.Unlock()
	if stray {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		// The sweep also ends machines that their boxes could not end, so its result counts.
		errs = []error{b.service.Sweep(ctx)}
	}
	errs = append(errs, b.service.Close())
	// A later sweep ends the rest.
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.state.Close()
}

// relayed returns the options for the agent of a box.
func (b *backend) relayed() relay.Options {
	return relay.Options{Name: b.name, Logger: b.logger}
}
