package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	_ "trajgen/sandbox/all" // registers every backend
	"trajgen/sandbox/images"
	"trajgen/sandbox/images/build"
)

// stateVariable names another directory for what sandboxes keep on disk.
const stateVariable = "TRAJGEN_STATE_DIR"

// StateDir is where sandboxes keep what must be on disk.
func StateDir() string {
	return cmp.Or(os.Getenv(stateVariable), sandbox.DefaultStateDir(os.Getuid(), os.Getenv("XDG_RUNTIME_DIR")))
}

// usableStateDir makes that directory. Without it, errors would look like a fault of the backend.
func usableStateDir() (string, error) {
	dir := StateDir()
	err := os.MkdirAll(dir, 0o700)
	if err == nil && unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		err = &os.PathError{Op: "write to", Path: dir, Err: unix.EACCES}
	}
	if err != nil {
		return "", fmt.Errorf("state directory of sandboxes: %w (the environment variable %s names another)", err, stateVariable)
	}
	return dir, nil
}

// Backend is a sandbox backend and its settings.
type Backend struct {
	Name     string
	Settings map[string]string
	ImageDir string            // "" is the default
	ImageMap map[string]string // image → another one that is taken instead
	ready    int               // how many sandboxes to keep ready
	logger   *slog.Logger
}

// Open opens the backend. Its errors are for the user to resolve.
func (c Backend) Open() (*OpenBackend, error) {
	kind, ok := sandbox.Kinds()[c.Name]
	if !ok {
		_, err := sandbox.Open(c.Name, sandbox.Options{}) // the error lists the backends
		return nil, err
	}
	settings, err := completeSettings(c.Name, kind.Settings, c.Settings)
	if err != nil {
		return nil, err
	}
	dir, err := usableStateDir()
	if err != nil {
		return nil, err
	}
	options := sandbox.Options{StateDir: dir, Settings: settings, Pool: c.ready, Logger: c.logger}
	store, storeErr := images.Open(images.Options{Dir: cmp.Or(c.ImageDir, ImageDir()), Unprivileged: os.Getuid() != 0, Now: time.Now, Logger: c.logger})
	if storeErr == nil {
		options.Images = store
	}
	backend, err := sandbox.Open(c.Name, options)
	if err != nil {
		if store != nil {
			err = errors.Join(err, store.Close())
		}
		return nil, err
	}
	b := &OpenBackend{Backend: backend, options: options, imageMap: c.ImageMap, store: store, missing: storeErr}
	b.engine = sync.OnceValues(b.findEngine)
	return b, nil
}

// OpenBackend is a backend that also closes its store of images.
type OpenBackend struct {
	sandbox.Backend
	options   sandbox.Options
	imageMap  map[string]string
	store     *images.Store // nil if it could not be opened
	importing sync.Mutex    // one image at a time goes to an engine, each once
	missing   error         // why the store could not be opened; only matters when an image is needed
	engine    func() (build.Engine, error)
}

// Open implements sandbox.Backend.
func (b *OpenBackend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec.Image = cmp.Or(b.imageMap[spec.Image], spec.Image)
	spec.Services = slices.Clone(spec.Services)
	for i, s := range spec.Services {
		spec.Services[i].Image = cmp.Or(b.imageMap[s.Image], s.Image)
	}
	return b.Backend.Open(ctx, spec)
}

// Close closes the backend and its store.
func (b *OpenBackend) Close() error {
	err := b.Backend.Close()
	if b.store != nil {
		err = errors.Join(err, b.store.Close())
	}
	return err
}

// Offers says why the backend has no sandbox with the network, the image, the root and the services of a spec.
func (b *OpenBackend) Offers(spec sandbox.Spec) error {
	g, network, image := b.Guarantees(), spec.Network, spec.Image
	var problems []error
	if network != "" && !slices.Contains(g.Network, network) {
		err := fmt.Errorf("network %q is not offered by the %s sandbox at level %s: choose one of %v with --network", network, g.Backend, g.Level, g.Network)
		problems = append(problems, lacking(err, g))
	}
	if image != "" && !g.Images {
		err := fmt.Errorf("image %q: the %s sandbox has none but its own; leave image out", image, g.Backend)
		if b.missing != nil {
			err = fmt.Errorf("image %q: %w", image, b.missing)
		}
		problems = append(problems, err)
	}
	if spec.Writable && image == "" && !g.WritableSystem {
		problems = append(problems, lacking(fmt.Errorf("root: writable: the %s sandbox at level %s has none without an image: name an image, or choose native or docker with --sandbox", g.Backend, g.Level), g))
	}
	if len(spec.Services) > 0 && !g.Services {
		problems = append(problems, fmt.Errorf("services %s: the %s sandbox is one machine and has none beside it: choose docker or podman with --sandbox", serviceNames(spec), g.Backend))
	}
	return errors.Join(problems...)
}

func serviceNames(spec sandbox.Spec) string {
	var names []string
	for _, s := range spec.Services {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// lacking adds to an error what is missing for better guarantees.
func lacking(err error, g sandbox.Guarantees) error {
	if len(g.Missing) == 0 {
		return err
	}
	return fmt.Errorf("%w; missing: %s", err, strings.Join(g.Missing, "; "))
}

// completeSettings checks the given settings and adds those of the environment.
func completeSettings(name string, known []sandbox.Setting, given map[string]string) (map[string]string, error) {
	settings := map[string]string{}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(known, func(s sandbox.Setting) bool { return s.Name == key })
		switch {
		case i < 0:
			problems = append(problems, fmt.Errorf("the %s sandbox has no setting %q (have %s)", name, key, settingNames(known)))
		case known[i].Secret:
			problems = append(problems, fmt.Errorf("setting %q of the %s sandbox is a secret: put it into the environment variable %s", key, name, known[i].Env))
		default:
			settings[key] = given[key]
		}
	}
	for _, s := range known {
		if value := os.Getenv(s.Env); s.Env != "" && value != "" && settings[s.Name] == "" {
			settings[s.Name] = value
		}
	}
	return settings, errors.Join(problems...)
}

func settingNames(known []sandbox.Setting) string {
	var names []string
	for _, s := range known {
		if !s.Secret {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// checkLevel refuses a backend that isolates less than requested, or than is expected of it.
func checkLevel(g sandbox.Guarantees, asked string) error {
	least, err := sandbox.ParseLevel(cmp.Or(asked, string(sandbox.Kinds()[g.Backend].LeastLevel), string(sandbox.LevelNone)))
	if err != nil {
		return err
	}
	if g.Level.AtLeast(least) {
		return nil
	}
	return lacking(fmt.Errorf("the %s sandbox reaches isolation level %s here, and the run asks for %s at least", g.Backend, g.Level, least), g)
}

// ImageDir is where images are kept unless a flag says otherwise.
func ImageDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = ""
	}
	return images.DefaultDir(os.Getuid(), cache)
}
