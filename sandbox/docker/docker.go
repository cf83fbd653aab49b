// Package docker runs each sandbox in a container of its own, through the Engine API of docker or podman.
//
// The container's command is the agent, a small program in a volume that all containers share; it serves commands and files
// over the standard streams, to which the runner is attached. The engine decides what is isolated: the kernel is shared unless
// its runtime has one of its own, user ids are those of the machine unless the engine shifts them, and full network is one of
// the engine's networks, unfiltered. When the runner dies, the engine closes the agent's input, the agent ends, and the engine
// removes the container.
//
// Each service beside a sandbox has a container of the same kind, with the sandbox's network.
package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/state"
)

func init() {
	for name, about := range map[string]string{
		"docker": "a container for each sandbox, made by a docker engine",
		"podman": "a container for each sandbox, made by podman's service",
	} {
		sandbox.Register(name, sandbox.Kind{
			About: about,
			Open: func(opts sandbox.Options) (sandbox.Backend, error) {
				b, err := open(name, opts)
				return b, bounded(err)
			},
			Settings: settings(name),
			Sweep:    sweep,
		})
	}
}

// Labels of all objects that belong to a runner.
const (
	labelInstance = "trajgen.instance" // Settings["label"] of the instance: unique on all machines
	labelOwner    = "trajgen.owner"    // host and process number of the runner, for users
	labelID       = "trajgen.id"       // of the sandbox
)

// settingLabel is the label in an instance's record, beside the settings of its engine.
const settingLabel = "label"

// openTime bounds how long the engine may take to answer, and to run one container.
const openTime = time.Minute

// backend makes sandboxes with one engine.
type backend struct {
	name       string
	engine     *engine
	settings   map[string]string
	logger     *slog.Logger
	label      string // on all that the backend makes
	state      *state.Instance
	images     *images
	agents     *agents
	guarantees sandbox.Guarantees
	quota      bool // containers can have a size limit; the self-test finds out
	userLimit  bool // containers must have a limit of processes of a user; the self-test finds out

	mu     sync.Mutex // guards what follows
	boxes  map[string]*box
	opened map[string]bool // ids that are taken
	closed bool
	unused map[string]bool // images of closed snapshots that are still in use
	count  int             // of snapshots and of containers

	removals int // in progress
	removing sync.WaitGroup
}

func open(name string, opts sandbox.Options) (sandbox.Backend, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	engine, err := connect(ctx, name, opts.Settings)
	if err != nil {
		return nil, err
	}
	b := &backend{
		name: name, engine: engine, settings: opts.Settings, logger: opts.Logger, label: strings.ToLower(rand.Text()[:16]),
		boxes: map[string]*box{}, opened: map[string]bool{}, unused: map[string]bool{},
	}
	b.images = newImages(engine, opts.Logger)
	b.agents = &agents{backend: b, volumes: map[string]*volume{}}
	recorded := map[string]string{settingLabel: b.label}
	for _, s := range settings(name) {
		if value := opts.Settings[s.Name]; value != "" && !s.Secret {
			recorded[s.Name] = value
		}
	}
	b.state, err = state.Create(opts.StateDir, state.Owner{Backend: name, PID: os.Getpid(), Settings: recorded})
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	if b.guarantees, err = b.selfTest(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("self-test of the %s engine: %w", name, err), b.Close())
	}
	return b, nil
}

// Guarantees says what the self-test found.
func (b *backend) Guarantees() sandbox.Guarantees { return b.guarantees }

// networks are the modes of containers; full needs a network of the engine.
var networks = []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback, sandbox.NetworkFull}

// Open starts a container.
func (b *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if spec.Network == sandbox.NetworkAllowlist {
		return nil, fmt.Errorf("open sandbox: network allowlist is not offered by %s, which filters no connections (the native backend does, with images, too)", b.name)
	}
	spec, err := spec.Complete(b.guarantees)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if err := b.reserve(spec.ID); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	x, err := b.start(ctx, spec)
	if err != nil {
		b.release(spec.ID)
		if what := "open sandbox " + spec.ID + ": "; !strings.HasPrefix(err.Error(), what) { // the agent's errors begin like this
			err = fmt.Errorf("%s%w", what, err)
		}
		return nil, bounded(err)
	}
	return x, nil
}

// start finds the image of a sandbox and runs it.
func (b *backend) start(ctx context.Context, spec sandbox.Spec) (*box, error) {
	image, err := b.image(ctx, &spec)
	if err != nil {
		return nil, err
	}
	beside, err := besideOf(spec)
	if err != nil {
		return nil, err
	}
	x, err := b.run(ctx, spec, image, beside)
	if errors.Is(err, errNoImage) && spec.From == nil {
		// It was removed since it was found.
		b.images.forget(image)
		if image, err = b.image(ctx, &spec); err != nil {
			return nil, err
		}
		x, err = b.run(ctx, spec, image, nil)
	}
	if err != nil {
		return nil, err
	}
	if err = x.serve(ctx, spec); err == nil {
		err = errors.Join(b.state.Add(spec.ID, 0), b.keep(x))
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

func (b *backend) image(ctx context.Context, spec *sandbox.Spec) (*image, error) {
	if spec.From != nil {
		s, ok := spec.From.(*snapshot)
		switch {
		case !ok || s.backend != b:
			return nil, errors.New("the snapshot is of another backend")
		case spec.Image != "" || spec.Workdir != "":
			return nil, errors.New("a fork has the image and the working directory of its snapshot, and none of its own")
		case s.closed.Load():
			return nil, errors.New("the snapshot is closed")
		}
		spec.Workdir = s.workdir
		return s.image, nil
	}
	reference := spec.Image
	if reference == "" {
		reference = b.settings[settingImage]
	}
	if reference == "" {
		return nil, fmt.Errorf("no image: the task names none, and neither does the setting %q of the %s backend", settingImage, b.name)
	}
	return b.images.find(ctx, reference)
}

func (b *backend) reserve(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("backend is closed: %w", sandbox.ErrGone)
	}
	if b.opened[id] {
		return errors.New("a sandbox of that id is open")
	}
	b.opened[id] = true
	return nil
}

func (b *backend) release(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.opened, id)
	delete(b.boxes, id)
}

func (b *backend) keep(x *box) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("backend is closed: %w", sandbox.ErrGone)
	}
	b.boxes[x.id] = x
	return nil
}

// Close ends all sandboxes and removes all that the backend made, but not pulled images.
func (b *backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	var boxes []*box
	for _, x := range b.boxes {
		boxes = append(boxes, x)
	}
	b.mu.Unlock()
	b.images.close()
	errs := make([]error, len(boxes))
	var all sync.WaitGroup
	for i, x := range boxes {
		all.Go(func() { errs[i] = x.Close() })
	}
	all.Wait()
	b.removing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := errors.Join(errors.Join(errs...), removeAll(ctx, b.engine, b.label))
	if err == nil {
		err = b.state.Close() // otherwise a sweep removes the rest
	}
	return bounded(errors.Join(err, b.engine.Close()))
}
