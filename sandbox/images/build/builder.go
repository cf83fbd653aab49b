package build

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
)

// Builder builds images. Its methods may be called from many goroutines at once.
type Builder struct {
	opts    Options
	maker   maker
	slots   chan struct{}
	ctx     context.Context // ends with the builder, as all builds do
	stop    context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	built map[string]*building // by source
}

// maker makes one image.
type maker interface {
	build(ctx context.Context, source Source) (Image, error)
	close() error
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
	b := &Builder{opts: opts, slots: make(chan struct{}, opts.Parallel), built: map[string]*building{}}
	if b.maker = engine(opts); opts.Engine == nil {
		b.maker = newNative(opts)
	}
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
	if !open {
		return nil
	}
	return b.maker.close()
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
	image, err := b.maker.build(ctx, source)
	took := b.opts.Now().Sub(began).Round(time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return Image{}, errClosed
	case err != nil:
		b.opts.Logger.Warn("image not built", "dir", source.Dir, "took", took, "error", err.Error())
		return Image{}, err
	}
	b.opts.Logger.Info("image built", "dir", source.Dir, "image", image.Reference, "layers", image.Layers, "made", image.Made, "took", took)
	return image, nil
}

// Name gives an image that was built a further reference, built:NAME.
func (b *Builder) Name(ctx context.Context, reference, name string) error {
	return b.opts.Store.Builds().Rename(ctx, strings.TrimPrefix(reference, "built:"), "built:"+name)
}

// engine has an engine build.
type engine Options

func (e engine) build(ctx context.Context, source Source) (Image, error) {
	reference, err := e.Engine.BuildImage(ctx, source, e.Network)
	return Image{Reference: reference}, err
}

func (engine) close() error { return nil }
