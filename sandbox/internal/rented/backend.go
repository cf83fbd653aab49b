package rented

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/agent"
	"trajgen/sandbox/internal/state"
)

// sweepTime bounds how long the service may take to end machines without a sandbox.
const sweepTime = time.Minute

// backend opens sandboxes on rented machines.
type backend struct {
	guarantees sandbox.Guarantees
	service    Service
	set        *agent.Set
	stray      atomic.Bool // there may be machines without a sandbox
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
	b := &backend{guarantees: p.Guarantees, service: service, set: agent.NewSet(p.Name, instance, opts.Logger)}
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
	spec, err := spec.Complete(b.guarantees)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	from, err := b.source(spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	l := &lease{backend: b, spec: spec, from: from}
	sb, err := b.set.Open(ctx, spec.ID, l.begin)
	if err != nil {
		return nil, err
	}
	if from != nil {
		// The service's snapshot includes all files.
		wrong := []string{sb.Layout().Tests}
		if from.folder != "" && from.folder != sb.Layout().ReadOnly {
			wrong = append(wrong, from.folder)
		}
		if err := sb.Files().Remove(ctx, wrong...); err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, errors.Join(err, sb.Close()))
		}
	}
	if sealer, ok := l.Machine.(Sealer); ok {
		return &sealable{Sandbox: sb, id: spec.ID, backend: b, machine: sealer}, nil
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

// Close ends all machines.
func (b *backend) Close() error {
	return b.set.Close(func(err error) error {
		if b.stray.Load() {
			ctx, cancel := context.WithTimeout(context.Background(), sweepTime)
			defer cancel()
			// It also ends machines that could not be ended one by one, so its result counts.
			err = b.service.Sweep(ctx)
		}
		return errors.Join(err, b.service.Close())
	})
}

// lease is the machine of a sandbox.
type lease struct {
	Machine
	backend *backend
	spec    sandbox.Spec
	from    *snapshot
}

// begin rents the machine.
func (l *lease) begin(ctx context.Context) (agent.Machine, error) {
	order := Order{Spec: l.spec}
	if l.from != nil {
		order.From = l.from.seal
	}
	var err error
	if l.Machine, err = l.backend.service.Create(ctx, order); err != nil {
		if _, none := errors.AsType[None](err); !none {
			l.backend.stray.Store(true)
		}
		return nil, err
	}
	return l, nil
}

// Spec implements agent.Machine.
func (l *lease) Spec() sandbox.Spec {
	image, inner := l.Image(), l.spec
	inner.Image, inner.From = "", nil
	// The service decides what the machine reaches, beside its loopback.
	if inner.Network != sandbox.NetworkNone {
		inner.Network = sandbox.NetworkFull
	}
	inner.Env = map[string]string{}
	maps.Copy(inner.Env, image.Env)
	maps.Copy(inner.Env, l.spec.Env)
	switch {
	case l.from != nil:
		inner.Workdir = l.from.workdir
	case inner.Workdir == "" && image.Workdir != "/" && image.Workdir != "/root":
		inner.Workdir = image.Workdir
	}
	return inner
}

// End ends the machine.
func (l *lease) End(ctx context.Context) error {
	err := l.Destroy(ctx)
	if err != nil {
		l.backend.stray.Store(true)
	}
	return err
}
