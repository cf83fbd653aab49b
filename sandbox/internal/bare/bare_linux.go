package bare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/box"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// closeTime bounds how long Close waits for the end of the sandbox.
const closeTime = 30 * time.Second

// Open opens a backend of one sandbox: the machine or container that this process runs in, whose maker says what it isolates. A
// second Open fails. Commands run with as few rights as possible, and are killed with their descendants when the sandbox is
// closed; files stay as they are. This process may start no others meanwhile, and must have called sandbox.Init.
func Open(opts Options) (sandbox.Backend, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	layout := sandbox.Layout{
		Workdir: orElse(opts.Workdir, "/workspace"), Home: orElse(opts.Home, "/root"), Tmp: orElse(opts.Tmp, "/tmp"),
		Tests: orElse(opts.Tests, guest.Tests),
	}
	b := &backend{layout: layout, logger: opts.Logger, user: "root", shallow: opts.Shallow}
	if os.Getuid() != 0 {
		b.user = "user"
		// A user without an entry, as in many containers, gets a temporary home.
		if opts.Home == "" {
			b.layout.Home = b.layout.Tmp
		}
		if u, err := user.Current(); err == nil {
			b.user = u.Username
			if opts.Home == "" && path.IsAbs(u.HomeDir) {
				b.layout.Home = path.Clean(u.HomeDir)
			}
		}
	}
	for _, dir := range []string{b.layout.Workdir, b.layout.Home, b.layout.Tmp, b.layout.Tests} {
		if !path.IsAbs(dir) {
			return nil, fmt.Errorf("open a bare sandbox: %q is not absolute", dir)
		}
	}
	return b, nil
}

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return path.Clean(value)
}

// backend is the backend of the one sandbox.
type backend struct {
	layout  sandbox.Layout
	user    string
	shallow bool
	logger  *slog.Logger

	mu     sync.Mutex
	opened bool // or closed before it was opened
	box    *box.Box
	guest  *guest.Bare
}

// networks are all modes: the machine or container decides which one it really is.
var networks = []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback, sandbox.NetworkAllowlist, sandbox.NetworkFull}

func (b *backend) Guarantees() sandbox.Guarantees {
	g := sandbox.Guarantees{
		Backend: "bare", Level: sandbox.LevelNone, Network: networks, Images: true,
		Isolation: map[string]string{
			"files": "shared", "processes": "shared", "network": "shared", "ids": hostIDs(), "calls": "none", "kernel": "shared",
		},
		Limits:  map[string]string{sandbox.LimitMemory: "none", sandbox.LimitProcesses: "none", sandbox.LimitCPU: "none", sandbox.LimitDisk: "none", sandbox.LimitInodes: "none", sandbox.LimitFiles: "soft"},
		Missing: []string{"isolation of its own: commands run in the machine or container that this program runs in"},
	}
	if os.Getpid() == 1 {
		g.Isolation["processes"] = "own"
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.guest != nil {
		if b.guest.Filtered {
			g.Isolation["calls"] = "filtered"
		}
		g.Missing = append(g.Missing, b.guest.Lacks...)
	}
	return g
}

// hostIDs returns what the user ids of this process are: host, shifted or single.
func hostIDs() string {
	content, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return "host"
	}
	fields := strings.Fields(string(content))
	switch {
	case len(fields) == 3 && fields[2] == "1":
		return "single"
	case len(fields) >= 3 && fields[0] == "0" && fields[1] == "0":
		return "host"
	}
	return "shifted"
}

// Open turns this process into the sandbox's guest. It ignores the image, which is the machine's or container's own.
func (b *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Complete(sandbox.Guarantees{Network: networks, Images: true})
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if spec.From != nil {
		return nil, fmt.Errorf("open sandbox %s: a bare sandbox has no snapshots", spec.ID)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	layout := b.layout
	if spec.Workdir != "" {
		if layout.Workdir = path.Clean(spec.Workdir); !path.IsAbs(layout.Workdir) {
			return nil, fmt.Errorf("open sandbox %s: workdir %q is not absolute", spec.ID, spec.Workdir)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opened {
		return nil, fmt.Errorf("open sandbox %s: a bare backend has one sandbox, which was opened already or is closed: %w", spec.ID, sandbox.ErrGone)
	}
	for _, dir := range []string{layout.Workdir, layout.Tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
		}
	}
	if err := os.MkdirAll(layout.Home, 0o755); err != nil {
		if !errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
		}
		layout.Home = layout.Tmp // as with a user without an entry
	}
	if f := spec.ReadOnly; f != nil {
		layout.ReadOnly = "/" + f.Name // where it is mounted
		if len(f.Files) > 0 {
			layout.ReadOnly = path.Join(layout.Home, f.Name) // at the top not every user can write, nor in every machine
		}
	}
	// The user is the container's, which need not be root.
	env := map[string]string{"USER": b.user}
	for k, v := range spec.Env {
		env[k] = v
	}
	spec.Env = env
	runner, theirs, err := wire.Pair()
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	b.opened = true
	if b.guest, err = guest.NewBare(theirs, layout.Workdir, layout.Tests, int64(spec.Limits.Files), spec.Network != sandbox.NetworkNone, b.shallow); err != nil {
		wire.CloseAll([]int{runner, theirs})
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	if b.box, err = box.New(b, spec, layout, runner, box.Options{Logger: b.logger}); err != nil {
		wire.CloseAll([]int{runner})
		return nil, errors.Join(fmt.Errorf("open sandbox %s: %w", spec.ID, err), b.guest.Wait(closeTime))
	}
	if f := spec.ReadOnly; f != nil {
		if err := f.Put(ctx, b.box.Files(), layout.ReadOnly); err != nil {
			return nil, errors.Join(fmt.Errorf("open sandbox %s: %w", spec.ID, err), b.box.Close())
		}
	}
	// Hide the optional interfaces of a box.
	return struct{ sandbox.Sandbox }{b.box}, nil
}

// Close ends the sandbox.
func (b *backend) Close() error {
	b.mu.Lock()
	b.opened = true
	opened := b.box
	b.mu.Unlock()
	if opened == nil {
		return nil
	}
	return opened.Close()
}

// End implements box.Owner.
func (b *backend) End() error {
	// The guest ends when its socket is closed.
	return errors.Join(b.box.Lost(), b.guest.Wait(closeTime))
}
