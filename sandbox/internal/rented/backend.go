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

// endTime bounds how long a machine is given to end.
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
	doubt  bool // there may be machines that no box stands for
}

// open opens a backend, which begins with renting a machine to look around in.
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

// Guarantees are what the self-test found, and what the service says of itself.
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

// source is the snapshot that a sandbox is opened from.
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

// undo ends what did not become a sandbox.
func (b *backend) undo(sb *box, reason error) error {
	err := sb.end()
	if err != nil {
		b.lose()
	}
	return errors.Join(reason, err)
}

// lose notes that there may be a machine that no box stands for.
func (b *backend) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubt = true
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
	doubt := b.doubt
	b.mu.Unlock()
	if doubt {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		// It speaks for what the boxes could not end, too.
		errs = []error{b.service.Sweep(ctx)}
	}
	errs = append(errs, b.service.Close())
	// What could not be ended is left to a sweep.
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return b.state.Close()
}

// relayed are the options for the agent of a box.
func (b *backend) relayed() relay.Options {
	return relay.Options{Name: b.name, Logger: b.logger}
}
