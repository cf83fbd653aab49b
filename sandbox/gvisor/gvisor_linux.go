package gvisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/agent"
	"trajgen/sandbox/internal/probe"
	"trajgen/sandbox/internal/state"
)

var settings = []sandbox.Setting{
	{Name: "program", Help: "runsc (default: the one in PATH)"},
	{Name: "platform", Help: "how it intercepts system calls: systrap (default), kvm or ptrace"},
	{Name: "image", Help: "of sandboxes whose task names none (default: the toolchain of this machine)", Env: "TRAJGEN_IMAGE"},
}

func init() {
	sandbox.Register("gvisor", sandbox.Kind{
		About:    "a kernel of its own for each sandbox, which runsc is; slower than native, and a second wall",
		Open:     open,
		Settings: settings,
		Sweep:    sweep,
	})
}

var networks = []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback}

// backend makes sandboxes with runsc.
type backend struct {
	*runsc
	set        *agent.Set
	images     sandbox.ImageStore
	image      string
	hostPaths  []string
	guarantees sandbox.Guarantees
	count      atomic.Int64
	host       func() (root, error) // the default image, made once
}

func open(opts sandbox.Options) (sandbox.Backend, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r, err := findRunsc(opts.Settings)
	if err != nil {
		return nil, err
	}
	instance, err := state.Create(opts.StateDir, state.Owner{
		Backend: "gvisor", PID: os.Getpid(), Settings: map[string]string{"program": r.program, "state": opts.StateDir},
	})
	if err != nil {
		return nil, err
	}
	r.dir, r.logger = instance.Dir, opts.Logger
	b := &backend{
		runsc: r, set: agent.NewSet("gvisor", instance, opts.Logger),
		images: opts.Images, image: opts.Settings["image"], hostPaths: opts.HostPaths,
	}
	b.host = sync.OnceValues(b.makeHost)
	if err := errors.Join(b.install(), b.selfTest()); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// install writes the agent to where sandboxes mount it from.
func (b *backend) install() error {
	program, err := sandbox.Agent(runtime.GOARCH)
	if err != nil {
		return err
	}
	return os.WriteFile(b.agent(), program, 0o755)
}

// Guarantees returns what the self-test found.
func (b *backend) Guarantees() sandbox.Guarantees { return b.guarantees }

// Open starts a kernel with an agent.
func (b *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Complete(sandbox.Guarantees{Network: networks, Images: b.images != nil})
	if err == nil && spec.From != nil {
		err = errors.New("gvisor has no snapshots")
	}
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	inner := spec
	inner.Image = ""
	inner.Env = map[string]string{} // root adds the image's
	maps.Copy(inner.Env, spec.Env)
	return b.set.Open(ctx, spec.ID, func(ctx context.Context) (agent.Machine, error) {
		r, err := b.root(ctx, &inner, spec.Image)
		if err != nil {
			return nil, err
		}
		return b.bundle(fmt.Sprintf("box-%d", b.count.Add(1)), r, &inner)
	})
}

// Close ends all sandboxes.
func (b *backend) Close() error { return b.set.Close(func(err error) error { return err }) }

// selfTest probes a sandbox. The guarantees are what it finds.
func (b *backend) selfTest() error {
	g := &b.guarantees
	*g = sandbox.Guarantees{
		Backend: "gvisor", Level: sandbox.LevelUser, Network: networks, Images: b.images != nil, StoredImages: b.images != nil,
		Isolation: map[string]string{"files": "own", "processes": "own", "network": "own", "ids": "own", "calls": "filtered", "kernel": "own"},
		Limits: map[string]string{
			sandbox.LimitMemory: "soft", sandbox.LimitProcesses: "none", sandbox.LimitCPU: "soft", sandbox.LimitDisk: "hard",
			sandbox.LimitInodes: "none", sandbox.LimitFiles: "soft",
		},
		Missing: []string{
			"a hard limit of processes: gVisor has none",
			"a hard limit of memory: at it, the sandbox as a whole may be ended",
			"networks allowlist and full: use native",
		},
	}
	if os.Getuid() != 0 {
		g.Limits[sandbox.LimitMemory], g.Limits[sandbox.LimitCPU] = "none", "none"
		g.Missing[1] = "limits of memory and CPU: run as root"
		g.Missing = append(g.Missing, "network none has a loopback: run as root")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	sb, err := b.Open(ctx, sandbox.Spec{
		ID: "self-test", Network: sandbox.NetworkNone, Limits: sandbox.Limits{Disk: 32 << 20}, ReadOnly: probe.Folder,
	})
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	facts, err := probe.Look(ctx, sb)
	if err := errors.Join(err, sb.Close()); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	own, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil || facts.Kernel == strings.TrimSpace(string(own)) {
		return fmt.Errorf("self-test: the sandbox has this machine's kernel %s, %w", facts.Kernel, err)
	}
	g.FixedFolder = facts.FixedFolder
	if facts.Processes > 10 || len(facts.Interfaces) > 0 || !facts.Unreachable || !facts.NoNewPrivs {
		return fmt.Errorf("self-test: the sandbox is not closed: %+v", facts)
	}
	return nil
}

// root finds the image's file system, and fills in the image's environment and working directory.
func (b *backend) root(ctx context.Context, spec *sandbox.Spec, reference string) (root, error) {
	if reference == "" {
		reference = b.image
	}
	if reference == "" {
		return b.host()
	}
	if b.images == nil {
		return root{}, fmt.Errorf("image %s: there is no image store", reference)
	}
	if os.Getuid() != 0 {
		return root{}, fmt.Errorf("image %s: gvisor takes root for images; without, it has the toolchain of this machine, and native has images", reference)
	}
	image, err := b.images.Find(ctx, reference)
	if err != nil {
		return root{}, err
	}
	for _, kv := range image.Env {
		k, v, ok := strings.Cut(kv, "=")
		if _, given := spec.Env[k]; ok && !given && sandbox.IsVariable(k) {
			spec.Env[k] = v
		}
	}
	if spec.Workdir == "" && image.Workdir != "/" {
		spec.Workdir = image.Workdir
	}
	return root{store: b.images.Dir(), layers: image.Layers}, nil
}

// findRunsc looks for the program.
func findRunsc(values map[string]string) (*runsc, error) {
	r := &runsc{program: values["program"], platform: values["platform"]}
	if r.program == "" {
		r.program = "runsc"
	}
	path, err := exec.LookPath(r.program)
	if err != nil {
		return nil, fmt.Errorf("%w (go install gvisor.dev/gvisor/runsc@go, with CGO_ENABLED=0, or https://gvisor.dev/docs/user_guide/install/; another place is named by the setting program)", err)
	}
	if r.program, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	if r.platform == "" {
		r.platform = "systrap"
	}
	if platforms := []string{"systrap", "kvm", "ptrace"}; !slices.Contains(platforms, r.platform) {
		return nil, fmt.Errorf("setting platform: unknown value %q (have %s)", r.platform, strings.Join(platforms, ", "))
	}
	return r, nil
}

// sweep ends the sandboxes of a dead runner, which end by themselves unless they hang.
func sweep(ctx context.Context, instance sandbox.Instance) error {
	if instance.Settings["program"] == "" {
		return nil
	}
	r := &runsc{program: instance.Settings["program"], dir: filepath.Join(instance.Settings["state"], instance.Name)}
	return r.removeAll(ctx)
}
