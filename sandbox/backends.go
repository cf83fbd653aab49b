package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"trajgen/sandbox/internal/self"
)

// Options configure a backend that is opened. The zero value works.
type Options struct {
	// StateDir holds what has to be on disk while sandboxes live. "" means DefaultStateDir of this user without a runtime
	// directory.
	StateDir string
	// HostPaths are further directories of the host, absolute, that the native backend shows read-only at the same place,
	// beside /usr and the like.
	HostPaths []string
	// Images finds the images that the native backend is asked for. With nil, it has its default file system only.
	Images ImageStore
	// Pool is how many sandboxes of each kind the native backend keeps ready ahead of demand. 0 keeps none.
	Pool int
	// Settings are options of one backend, such as the address of its server: see Kind.Settings.
	Settings map[string]string
	// Logger receives what Open removed of dead runners, and brokers that died. Nil logs nothing.
	Logger *slog.Logger
}

// Kind is a backend that can be opened by name.
type Kind struct {
	// About is one line that helps users to choose.
	About string
	Open  func(Options) (Backend, error)
	// Settings are the names that Options.Settings may hold: Open refuses others.
	Settings []Setting
	// LeastLevel is the isolation level that users of this backend get by default: a run with less fails. "" is LevelNone.
	LeastLevel Level
	// SharesMachine says that the sandboxes run on a machine that others use too, and that the connection to it can be lost.
	SharesMachine bool
	// Sweep ends and removes what a dead runner's instance left outside of its directory. Nil when the backend leaves nothing
	// there.
	Sweep func(ctx context.Context, instance Instance) error
}

// Setting is an option of one backend.
type Setting struct {
	Name string
	Help string
	Env  string // environment variable that usually holds it; "" is none
	// Secret settings are read from their variable only, and never written down.
	Secret bool
}

// Instance is what a runner wrote down about itself when it opened a backend; the runner has died since.
type Instance struct {
	Name     string            // unique on this machine
	Dir      string            // its directory below the state directory
	Settings map[string]string // without secrets
	Cgroups  []string          // those that it may have made
}

// kinds has every backend that is linked in. Package sandbox/all links all of them, and its tests run the suite against each.
var kinds = map[string]Kind{}

// Register adds a backend. The init function of the backend's package calls it; a second backend of the same name panics.
func Register(name string, kind Kind) {
	if _, ok := kinds[name]; ok {
		panic(fmt.Sprintf("sandbox backend %q registered twice", name))
	}
	kinds[name] = kind
}

// Kinds returns all backends by name.
func Kinds() map[string]Kind { return maps.Clone(kinds) }

// Names returns the names of all backends, sorted.
func Names() []string { return slices.Sorted(maps.Keys(kinds)) }

// Open opens a backend.
func Open(name string, opts Options) (Backend, error) {
	kind, ok := kinds[name]
	if !ok {
		return nil, fmt.Errorf("unknown sandbox backend %q (have %s)", name, strings.Join(Names(), ", "))
	}
	if err := checkSettings(kind.Settings, opts.Settings); err != nil {
		return nil, fmt.Errorf("open sandbox backend %s: %w", name, err)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.StateDir == "" {
		opts.StateDir = DefaultStateDir(os.Getuid(), "")
	}
	var err error
	if opts.StateDir, err = filepath.Abs(opts.StateDir); err != nil {
		return nil, err
	}
	leftovers, err := Sweep(opts.StateDir)
	for _, l := range leftovers {
		opts.Logger.Info("removed leftovers of a dead runner", "path", l.Path, "backend", l.Backend, "pid", l.Owner)
	}
	if err != nil {
		// These leftovers are of other runners, so this one can begin.
		opts.Logger.Warn("sweep leftovers of dead runners", "err", err)
	}
	self.HeedSignals()
	backend, err := kind.Open(opts)
	if err != nil {
		return nil, fmt.Errorf("open sandbox backend %s: %w", name, err)
	}
	return backend, nil
}

// checkSettings refuses settings that a kind does not declare.
func checkSettings(declared []Setting, given map[string]string) error {
	names := make([]string, len(declared))
	for i, s := range declared {
		names[i] = s.Name
	}
	have := strings.Join(names, ", ")
	if have == "" {
		have = "none"
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("unknown setting %q (have %s)", name, have))
		}
	}
	return errors.Join(errs...)
}

// DefaultStateDir is where state belongs for a user: runtimeDir is the value of XDG_RUNTIME_DIR, if any.
func DefaultStateDir(uid int, runtimeDir string) string {
	switch {
	case uid == 0:
		return "/run/trajgen"
	case runtimeDir != "":
		return filepath.Join(runtimeDir, "trajgen")
	}
	return filepath.Join(os.TempDir(), "trajgen-"+strconv.Itoa(uid))
}

var (
	idPattern  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	envPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// IsVariable reports whether sandboxes can be given an environment variable of a name. Images may have others, too.
func IsVariable(name string) bool { return envPattern.MatchString(name) }

// Complete validates a spec for a backend that has the networks, images, writable system and services of has. It fills in defaults.
func (s Spec) Complete(has Guarantees) (Spec, error) {
	var errs []error
	if !idPattern.MatchString(s.ID) {
		errs = append(errs, fmt.Errorf("id %q is not of 1 to 128 letters, digits, '-' and '_'", s.ID))
	}
	if s.Image != "" && !has.Images {
		errs = append(errs, fmt.Errorf("image %q: this backend has none but its default", s.Image))
	}
	if s.Writable && s.Image == "" && !has.WritableSystem {
		errs = append(errs, errors.New("commands cannot write to the root of this backend's default image: name an image, or take native or docker"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if !IsVariable(name) || strings.ContainsRune(s.Env[name], 0) {
			errs = append(errs, fmt.Errorf("environment variable %q is malformed", name))
		}
	}
	if s.Network == "" {
		s.Network = NetworkLoopback
	}
	if !slices.Contains(has.Network, s.Network) {
		errs = append(errs, fmt.Errorf("network %q is not offered by this backend (have %v)", s.Network, has.Network))
	}
	errs = append(errs, s.checkAllow(), s.ReadOnly.Check(), s.checkServices(has.Services))
	l := &s.Limits
	if l.Memory < 0 || l.Processes < 0 || l.CPUs < 0 || l.Disk < 0 || l.Inodes < 0 || l.Files < 0 {
		errs = append(errs, errors.New("a limit is negative"))
	}
	l.Memory = cmp.Or(l.Memory, 1<<30)
	l.Processes = cmp.Or(l.Processes, 256)
	l.Disk = cmp.Or(l.Disk, 512<<20)
	// Inodes use memory that the size of a file system does not count.
	l.Inodes = cmp.Or(l.Inodes, min(max(l.Disk/2048, 4096), 1<<20))
	// The guest itself needs a few open files.
	l.Files = max(cmp.Or(l.Files, 1024), 64)
	return s, errors.Join(errs...)
}
