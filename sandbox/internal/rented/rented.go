// Package rented is what backends share that rent a machine of a service for each sandbox: the agent that serves the
// sandbox from inside, the record of what there is, and the end of all of it.
package rented

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/state"
	"trajgen/sandbox/relay"
)

// endTime bounds how long a machine is given to end.
const endTime = time.Minute

// Service rents machines.
type Service interface {
	// Create makes a machine. When it fails there may be one none the less, which Sweep finds, unless the error is None.
	Create(ctx context.Context, order Order) (Machine, error)
	// Sweep ends all machines of this instance.
	Sweep(ctx context.Context) error
	// Close frees what the service's client holds. It is called last.
	Close() error
}

// None is an error of a request that surely made no machine.
type None struct{ Cause error }

func (n None) Error() string { return n.Cause.Error() }

// Unwrap returns the cause.
func (n None) Unwrap() error { return n.Cause }

// Order is what a machine is to be.
type Order struct {
	Spec sandbox.Spec // complete
	From Seal         // what the machine begins with, instead of Spec.Image; nil is none
}

// Machine is a machine of a service.
type Machine interface {
	// Image says how the machine's image wants to be used.
	Image() Image
	// Start starts the agent and returns its input and output.
	Start(ctx context.Context) (io.ReadWriteCloser, error)
	// Destroy ends the machine with all that runs in it, and returns when it has ended. It is no error when it had.
	Destroy(ctx context.Context) error
}

// Sealer is a Machine whose files can be sealed.
type Sealer interface {
	Machine
	// Seal keeps the files as they are.
	Seal(ctx context.Context) (Seal, error)
}

// Seal is the sealed files of a machine.
type Seal interface {
	// Delete gives them up.
	Delete(ctx context.Context) error
}

// Image is how an image wants to be used.
type Image struct {
	Workdir string            // "", "/" and root's home mean none
	Env     map[string]string // beside what a backend sets itself
}

// Options are what a backend is opened with.
type Options struct {
	Backend    string             // name of the kind
	Guarantees sandbox.Guarantees // what the service says; a self-test adds what it finds
	StateDir   string
	Settings   map[string]string // what a sweep needs, without secrets
	Logger     *slog.Logger
	// Service makes the service for an instance, whose machines bear a mark that no other's do.
	Service func(mark string) (Service, error)
}

// Backend opens sandboxes on rented machines.
type Backend struct {
	opts    Options
	service Service
	state   *state.Instance

	opening sync.WaitGroup

	mu     sync.Mutex // guards what follows
	boxes  map[string]*box
	closed bool
	doubt  bool // there may be machines that no box stands for
}

// Open opens a backend, which begins with renting a machine to look around in.
func Open(opts Options) (*Backend, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	opts.Guarantees.Backend = opts.Backend
	// The instance's name is unique on this machine alone.
	recorded := map[string]string{mark: strings.ToLower(rand.Text())}
	maps.Copy(recorded, opts.Settings)
	instance, err := state.Create(opts.StateDir, state.Owner{Backend: opts.Backend, PID: os.Getpid(), Settings: recorded})
	if err != nil {
		return nil, err
	}
	service, err := opts.Service(recorded[mark])
	if err != nil {
		return nil, errors.Join(err, instance.Close())
	}
	b := &Backend{opts: opts, service: service, state: instance, boxes: map[string]*box{}}
	b.opts.Guarantees.Limits = maps.Clone(opts.Guarantees.Limits)
	b.opts.Guarantees.Missing = slices.Clone(opts.Guarantees.Missing)
	if err := b.selfTest(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Guarantees are what the self-test found, and what the service says of itself.
func (b *Backend) Guarantees() sandbox.Guarantees { return b.opts.Guarantees }

// Open rents a machine.
func (b *Backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	g := b.opts.Guarantees
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
func (b *Backend) source(spec sandbox.Spec) (*snapshot, error) {
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

func (b *Backend) open(ctx context.Context, sb *box, spec sandbox.Spec, from *snapshot) (err error) {
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
func (b *Backend) undo(sb *box, reason error) error {
	err := sb.end()
	if err != nil {
		b.lose()
	}
	return errors.Join(reason, err)
}

// lose notes that there may be a machine that no box stands for.
func (b *Backend) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubt = true
}

var errClosed = fmt.Errorf("backend is closed: %w", sandbox.ErrGone)

func (b *Backend) reserve(sb *box) error {
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

func (b *Backend) forget(sb *box) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.boxes[sb.id] == sb {
		delete(b.boxes, sb.id)
	}
}

// Close ends all machines.
func (b *Backend) Close() error {
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
func (b *Backend) relayed() relay.Options {
	return relay.Options{Name: b.opts.Backend, Logger: b.opts.Logger}
}

// mark is the record of what an instance's machines bear.
const mark = "mark"

// Marked returns what the machines of a dead instance bear, and what was recorded of its settings.
func Marked(instance sandbox.Instance) (string, map[string]string, error) {
	values := maps.Clone(instance.Settings)
	found := values[mark]
	if found == "" {
		return "", nil, fmt.Errorf("instance %s: nothing is recorded of what its machines bear", instance.Name)
	}
	delete(values, mark)
	return found, values, nil
}

// Environment returns what an image sets, of the environment of a process in it: without what is the process's own, or
// the service's, whose names begin with prefix.
func Environment(environ, prefix string) map[string]string {
	env := map[string]string{}
	for kv := range strings.SplitSeq(environ, "\x00") {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || !variable.MatchString(name) || strings.HasPrefix(name, prefix) || slices.Contains(own, name) {
			continue
		}
		env[name] = value
	}
	return env
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// own are variables of a process, and those that a backend sets itself.
var own = []string{"HOME", "HOSTNAME", "LANG", "LOGNAME", "OLDPWD", "PWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "TZ", "USER", "_"}
