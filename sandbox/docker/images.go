package docker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// image is an image of the engine.
type image struct {
	reference string // as requested
	id        string
	goarch    string
	env       map[string]string
	workdir   string // "" when the image names none
	user      string
	// entrypoint and command are what the image starts; sandboxes start the agent instead.
	entrypoint, command []string

	shared string // archive of the files of sharedDir, in a snapshot's image; "" is none
}

// images finds images, and pulls those that the engine does not have; concurrent calls share a pull.
type images struct {
	engine *engine
	logger *slog.Logger
	ctx    context.Context // ends with the backend, as all pulls do
	stop   context.CancelFunc
	pulls  sync.WaitGroup

	mu    sync.Mutex
	found map[string]*finding // by reference
}

// finding is the search for an image, which may have ended.
type finding struct {
	done  chan struct{} // closed when the other fields are set
	image *image
	err   error
}

func newImages(engine *engine, logger *slog.Logger) *images {
	// Not the context of the first caller: others wait for the same image.
	ctx, stop := context.WithCancel(context.Background())
	return &images{engine: engine, logger: logger, ctx: ctx, stop: stop, found: map[string]*finding{}}
}

// find returns an image. A reference gives the same image as long as the backend is open, even if its tag is moved.
func (i *images) find(ctx context.Context, reference string) (*image, error) {
	i.mu.Lock()
	f := i.found[reference]
	if f == nil {
		f = &finding{done: make(chan struct{})}
		i.found[reference] = f
		i.pulls.Go(func() {
			f.image, f.err = i.get(reference)
			if f.err != nil {
				i.mu.Lock()
				delete(i.found, reference)
				i.mu.Unlock()
			}
			close(f.done)
		})
	}
	i.mu.Unlock()
	select {
	case <-f.done:
		return f.image, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// forget makes find search again.
func (i *images) forget(image *image) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if f := i.found[image.reference]; f != nil && f.image == image {
		delete(i.found, image.reference)
	}
}

func (i *images) close() {
	i.stop()
	i.pulls.Wait()
}

func (i *images) get(reference string) (*image, error) {
	image, err := i.inspect(reference)
	if !errdefs.IsNotFound(err) {
		return image, err
	}
	if err := i.pull(reference); err != nil {
		return nil, fmt.Errorf("pull image %s: %w", reference, err)
	}
	return i.inspect(reference)
}

func (i *images) inspect(reference string) (*image, error) {
	found, err := i.engine.ImageInspect(i.ctx, reference)
	if err != nil {
		return nil, fmt.Errorf("look at image %s: %w", reference, err)
	}
	m := &image{reference: reference, id: found.ID, goarch: goarch(found.Architecture), env: map[string]string{}}
	if found.Os != "" && found.Os != "linux" {
		return nil, fmt.Errorf("image %s is of %s (want linux)", reference, found.Os)
	}
	if config := found.Config; config != nil {
		m.workdir, m.user, m.entrypoint, m.command = config.WorkingDir, config.User, config.Entrypoint, config.Cmd
		for _, kv := range config.Env {
			if name, value, ok := strings.Cut(kv, "="); ok {
				m.env[name] = value
			}
		}
	}
	return m, nil
}

// pull logs its progress every few seconds.
func (i *images) pull(reference string) error {
	const every = 10 * time.Second
	began := time.Now()
	i.logger.Info("pull an image", "image", reference)
	response, err := i.engine.ImagePull(i.ctx, reference, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	defer response.Close()
	layers, said := map[string][2]int64{}, began
	for message, err := range response.JSONMessages(i.ctx) {
		if err != nil {
			return err
		}
		if message.Error != nil {
			return message.Error
		}
		if message.Progress != nil && message.Progress.Total > 0 && message.Status == "Downloading" {
			layers[message.ID] = [2]int64{message.Progress.Current, message.Progress.Total}
		}
		if time.Since(said) > every {
			said = time.Now()
			var current, total int64
			for _, l := range layers {
				current, total = current+l[0], total+l[1]
			}
			i.logger.Info("an image is being pulled", "image", reference, "bytes", current, "of", total, "layers", len(layers))
		}
	}
	i.logger.Info("pulled an image", "image", reference, "took", time.Since(began).Round(time.Millisecond))
	return nil
}
