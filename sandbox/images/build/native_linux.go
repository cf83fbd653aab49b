package build

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
)

// native builds with native sandboxes.
type native struct {
	opts    Options
	store   images.Builds
	stages  stages
	names   atomic.Int64
	backend func() (sandbox.Backend, error)
}

func newNative(opts Options) maker {
	n := &native{opts: opts, store: opts.Store.Builds(), stages: stages{dir: opts.Store.Dir()}}
	n.backend = sync.OnceValues(func() (sandbox.Backend, error) { return opts.Open(&n.stages) })
	return n
}

// close closes the backend, if a command has opened it.
func (n *native) close() error {
	if !n.stages.used() {
		return nil
	}
	backend, err := n.backend()
	if err != nil {
		return nil // whoever built has the error
	}
	return backend.Close()
}

func (n *native) build(ctx context.Context, source Source) (Image, error) {
	w, err := n.read(source)
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
	if err := n.store.Keep(ctx, image.Digest, s.layers, s.config, image.Reference); err != nil {
		return Image{}, w.fault(&Error{Reason: Machine, Err: err})
	}
	if image.Made == 0 { // and the store has not grown: to look at all its layers would be in vain
		return image, nil
	}
	return image, n.store.Bound(ctx, n.opts.MaxBytes)
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
