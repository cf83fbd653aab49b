package build

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
)

// Builder builds images. Its methods may be called from many goroutines at once.
type Builder struct {
	opts    Options
	store   images.Builds
	stages  stages
	slots   chan struct{}
	names   atomic.Int64
	backend func() (sandbox.Backend, error)
	ctx     context.Context // ends with the builder, as all builds do
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	built map[string]*building // by source
}

// building is a build, which may have ended.
type building struct {
	done  chan struct{} // closed when the other fields are set
	image Image
	err   error
}

// New returns a builder. It opens the backend when a command has to run for the first time.
func New(opts Options) *Builder {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	opts.Parallel, opts.MaxBytes = cmp.Or(opts.Parallel, 2), cmp.Or(opts.MaxBytes, 64<<30)
	if opts.Network == "" {
		opts.Network, opts.Allow = sandbox.NetworkAllowlist, append(opts.Allow, Packages...)
	}
	l := &opts.Limits
	// What commands write is in memory until it is a layer.
	l.Memory, l.Disk, l.Processes, l.Files = cmp.Or(l.Memory, 8<<30), cmp.Or(l.Disk, 8<<30), cmp.Or(l.Processes, 4096), cmp.Or(l.Files, 4096)
	b := &Builder{
		opts: opts, store: opts.Store.Builds(), stages: stages{dir: opts.Store.Dir()}, slots: make(chan struct{}, opts.Parallel),
		built: map[string]*building{},
	}
	b.backend = sync.OnceValues(func() (sandbox.Backend, error) { return opts.Open(&b.stages) })
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// errClosed ends the builds of a builder that is closed.
var errClosed = errors.New("the builder is closed")

// Close ends all builds. It is idempotent.
func (b *Builder) Close() error {
	b.stop()
	b.mu.Lock()
	open := b.built != nil
	b.built = nil
	b.mu.Unlock()
	b.running.Wait()
	if !open || !b.stages.used() {
		return nil
	}
	backend, err := b.backend()
	if err != nil {
		return nil // whoever built has the error
	}
	return backend.Close()
}

// Build builds an image, once for each source: a failed build is not tried again. Concurrent callers share a build, which goes
// on when they give up. The error wraps an *Error, unless ctx or the builder ended.
func (b *Builder) Build(ctx context.Context, source Source) (Image, error) {
	key, err := json.Marshal(source)
	if err != nil {
		return Image{}, err
	}
	b.mu.Lock()
	if b.built == nil {
		b.mu.Unlock()
		return Image{}, errClosed
	}
	f := b.built[string(key)]
	if f == nil {
		f = &building{done: make(chan struct{})}
		b.built[string(key)] = f
		b.running.Go(func() {
			defer close(f.done)
			f.image, f.err = b.limited(b.ctx, source)
		})
	}
	b.mu.Unlock()
	select {
	case <-f.done:
		return f.image, f.err
	case <-ctx.Done():
		return Image{}, context.Cause(ctx)
	}
}

// limited waits until one of the builds at once may begin.
func (b *Builder) limited(ctx context.Context, source Source) (Image, error) {
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return Image{}, errClosed
	}
	began := b.opts.Now()
	image, err := b.build(ctx, source)
	took := b.opts.Now().Sub(began).Round(time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return Image{}, errClosed
	case err != nil:
		b.opts.Logger.Warn("image not built", "dir", source.Dir, "took", took, "error", err.Error())
		return Image{}, err
	}
	b.opts.Logger.Info("image built", "dir", source.Dir, "image", image.Reference, "layers", image.Layers, "made", image.Made, "took", took)
	if image.Made == 0 { // and the store has not grown: to look at all its layers would be in vain
		return image, nil
	}
	return image, b.store.Bound(ctx, b.opts.MaxBytes)
}

func (b *Builder) build(ctx context.Context, source Source) (Image, error) {
	w, err := b.read(source)
	if err != nil {
		return Image{}, err
	}
	defer w.files.close()
	last, err := w.target()
	if err != nil {
		return Image{}, w.fault(err)
	}
	s, err := w.stage(ctx, last)
	if err != nil {
		return Image{}, w.fault(err)
	}
	config, err := json.Marshal(s.config)
	if err != nil {
		return Image{}, err
	}
	sum := sha256.Sum256(append([]byte("image\x00"+s.key+"\x00"), config...))
	image := Image{Digest: fmt.Sprintf("sha256:%x", sum), Layers: w.layers, Made: w.made}
	image.Reference = "built:" + image.Digest
	if err := b.store.Keep(ctx, image.Digest, s.layers, s.config, image.Reference); err != nil {
		return Image{}, w.fault(&Error{Reason: Machine, Err: err})
	}
	return image, nil
}

// Name gives an image that was built a further reference, built:NAME.
func (b *Builder) Name(ctx context.Context, reference, name string) error {
	return b.store.Rename(ctx, strings.TrimPrefix(reference, "built:"), "built:"+name)
}

// stages is the image store of the backend: it knows the file systems of stages that are being built.
type stages struct {
	dir string

	mu   sync.Mutex
	next int64
	all  map[string]sandbox.Image
}

// add returns a reference to a file system, until it is removed.
func (s *stages) add(image sandbox.Image) (reference string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string]sandbox.Image{}
	}
	s.next++
	reference = "stage-" + strconv.FormatInt(s.next, 10)
	s.all[reference] = image
	return reference
}

func (s *stages) remove(reference string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, reference)
}

// used reports whether there ever was one.
func (s *stages) used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all != nil
}

// Find implements sandbox.ImageStore.
func (s *stages) Find(_ context.Context, reference string) (sandbox.Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image, ok := s.all[reference]
	if !ok {
		return sandbox.Image{}, fmt.Errorf("%s is not being built", reference)
	}
	return image, nil
}

// Dir implements sandbox.ImageStore.
func (s *stages) Dir() string { return s.dir }
