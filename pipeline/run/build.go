package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/sandbox"
	"trajgen/sandbox/images"
	"trajgen/sandbox/images/build"
)

// Builds are options of a builder that a run file or flags give.
type Builds struct {
	Network string   // packages, full or none
	Allow   []string // further targets, with packages
	Map     map[string]string
	Secrets map[string][]byte
	Engine  build.Engine // builds in place of native sandboxes
}

// NewBuilder returns a builder of images for a store.
func (b Builds) NewBuilder(store *images.Store, options sandbox.Options) *build.Builder {
	opts := build.Options{
		Store: store, Allow: b.Allow, Map: b.Map, Secrets: b.Secrets, Engine: b.Engine, Logger: options.Logger, Now: time.Now,
		Open: func(images sandbox.ImageStore) (sandbox.Backend, error) {
			return sandbox.Open("native", sandbox.Options{StateDir: options.StateDir, Images: images, Logger: options.Logger})
		},
	}
	switch b.Network {
	case "full":
		opts.Network, opts.Allow = sandbox.NetworkFull, nil
	case "none":
		opts.Network = sandbox.NetworkLoopback
	}
	return build.New(opts)
}

// SourceOf is what a task's image is built from.
func SourceOf(b *episode.Build) build.Source {
	return build.Source{Dir: b.Dir, Dockerfile: b.Dockerfile, Args: b.Args, Target: b.Target}
}

// canBuild says why images of Dockerfiles cannot be built for the backend.
func (o *opened) canBuild() error {
	if o.opening() != nil {
		return nil // another check reports that
	}
	_, builds := o.Backend.Backend.(build.Engine)
	switch name := o.Backend.Guarantees().Backend; {
	case builds:
		engine, err := o.Backend.engine()
		switch s := o.File.Sandbox; {
		case err != nil || engine == nil:
			return err
		case s.BuildNetwork != "full" && s.BuildNetwork != "none":
			return fmt.Errorf("build: native sandboxes cannot run here (trajgen doctor says why), and %s cannot keep builds to the sites of packages: set sandbox.build_network to full or none", name)
		case len(s.ImageMap) > 0:
			return fmt.Errorf("build: native sandboxes cannot run here (trajgen doctor says why), and %s builds without sandbox.image_map: tag these images in the engine", name)
		}
		return nil
	case o.Backend.missing != nil:
		return fmt.Errorf("build: %w", o.Backend.missing)
	case !o.Backend.Guarantees().StoredImages:
		return fmt.Errorf("build: the %s sandbox takes no image that was built here: use native, gvisor, docker or podman, or build the image for it and name it (image)", name)
	}
	return nil
}

// findEngine returns what builds images where native sandboxes cannot; nil where they can.
func (b *OpenBackend) findEngine() (build.Engine, error) {
	engine, ok := b.Backend.(build.Engine)
	if !ok || b.store == nil {
		return engine, nil
	}
	native, err := sandbox.Open("native", sandbox.Options{StateDir: b.options.StateDir, Images: b.store, Logger: b.options.Logger})
	if err != nil {
		return engine, nil
	}
	if g := native.Guarantees(); g.StoredImages && g.Snapshots {
		engine = nil
	}
	return engine, native.Close()
}

// ahead is how many images may be built that no episode has asked for yet.
const ahead = 8

// builds are the images that a run builds: ahead of the episodes that need them.
type builds struct {
	*build.Builder
	places chan struct{} // taken by builds that no episode has asked for yet

	mu    sync.Mutex
	asked map[string]bool // whether an episode has asked for an image that is begun, by its source
}

// ask notes that an episode needs an image, which gives up the place of one that is built ahead.
func (b *builds) ask(source build.Source) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := jsonText(source)
	if asked, begun := b.asked[name]; begun && !asked {
		<-b.places
	}
	b.asked[name] = true
}

// begin notes that an image is built ahead, in a place that the caller has taken, or says that it need not be.
func (b *builds) begin(source build.Source) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := jsonText(source)
	if _, begun := b.asked[name]; begun {
		<-b.places
		return false
	}
	b.asked[name] = false
	return true
}

// buildImage makes the image of a task or of a verifier.
func (e *Experiment) buildImage(ctx context.Context, from *episode.Build) (string, error) {
	if e.builds == nil {
		return "", errors.New("no image can be built here")
	}
	e.builds.ask(SourceOf(from))
	image, err := e.builds.Build(ctx, SourceOf(from))
	if err != nil {
		return "", err
	}
	return e.Backend.take(ctx, image)
}

// take returns the reference that the backend has for an image that was built.
func (b *OpenBackend) take(ctx context.Context, built build.Image) (string, error) {
	builds, err := b.engine()
	engine, ok := b.Backend.(sandbox.Importer)
	if err != nil || builds != nil || !ok {
		return built.Reference, err
	}
	image, err := b.store.Find(ctx, built.Reference)
	if err != nil {
		return "", err
	}
	reference := "trajgen/built:" + strings.TrimPrefix(built.Digest, "sha256:")
	b.importing.Lock()
	defer b.importing.Unlock()
	return reference, engine.Import(ctx, reference, image, func(to io.Writer) error { return b.store.Tar(image, to) })
}

// openBuilds begins to build the images of the tasks that will be played and of their verifiers, in their order. An episode whose
// image cannot be built has the error.
func (e *Experiment) openBuilds(ctx context.Context) error {
	if !e.built {
		return nil
	}
	engine, err := e.Backend.engine()
	if err != nil || engine == nil && e.Backend.store == nil {
		return err
	}
	s := e.File.Sandbox
	from := Builds{Network: s.BuildNetwork, Allow: s.BuildAllow, Map: s.ImageMap, Engine: engine}
	b := &builds{Builder: from.NewBuilder(e.Backend.store, e.Backend.options), places: make(chan struct{}, ahead), asked: map[string]bool{}}
	e.builds = b
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var working sync.WaitGroup
	working.Go(func() {
		for task, err := range e.Playable(e.Source.InOrder(ctx)) {
			if err != nil || ctx.Err() != nil {
				return // the run has the error
			}
			for _, from := range task.Builds() {
				select {
				case b.places <- struct{}{}:
				case <-ctx.Done():
					return
				}
				if source := SourceOf(from); b.begin(source) {
					working.Go(func() { _, _ = b.Build(ctx, source) })
				}
			}
		}
	})
	e.closers = append(e.closers, func() error {
		stop()
		working.Wait()
		return b.Close()
	})
	return nil
}

// Built is what became of one image.
type Built struct {
	Task   string `json:"task,omitempty"` // the first that wants it
	Dir    string `json:"dir"`
	Image  string `json:"image,omitempty"` // its reference
	Layers int    `json:"layers"`
	Made   int    `json:"made"`             // of the layers; the others were there
	Reason string `json:"reason,omitempty"` // why it failed, as a word to count by
	Error  string `json:"error,omitempty"`
}

// BuildAll builds the images that the tasks of a dataset and their verifiers want, several at once, and tells of each, in the order of the dataset.
// Its error is about the dataset.
func BuildAll(ctx context.Context, b *build.Builder, path string, tell func(Built)) error {
	file := Default()
	file.Dataset.Path = datasets.Paths{path}
	source, _, err := file.Dataset.Open(datasets.Options{})
	if err != nil {
		return err
	}
	ordered := make(chan chan Built, ahead)
	failed := make(chan error, 1)
	go func() {
		defer close(ordered)
		known := map[string]bool{}
		for task, err := range source.InOrder(ctx) {
			if err != nil {
				failed <- err
				return
			}
			for _, from := range task.Builds() {
				source := SourceOf(from)
				if known[jsonText(source)] {
					continue
				}
				known[jsonText(source)] = true
				result := make(chan Built, 1)
				ordered <- result
				go func() { result <- BuildOne(ctx, b, task.ID, source) }()
			}
		}
		failed <- nil
	}()
	for result := range ordered {
		tell(<-result)
	}
	return cmp.Or(<-failed, context.Cause(ctx))
}

// BuildOne builds an image.
func BuildOne(ctx context.Context, b *build.Builder, task string, source build.Source) Built {
	image, err := b.Build(ctx, source)
	built := Built{Task: task, Dir: source.Dir, Image: image.Reference, Layers: image.Layers, Made: image.Made}
	if err != nil {
		built.Error, built.Reason = err.Error(), build.Machine
		if fault, ok := errors.AsType[*build.Error](err); ok {
			built.Reason = fault.Reason
		}
	}
	return built
}
