// Package singularity runs sandboxes as instances of Apptainer or Singularity, the containers of computing clusters, which need
// neither a daemon nor root. It needs Apptainer 1.1 or SingularityCE 3.10.
//
// The tests use a stand-in that accepts the same arguments and no others; the real programs are not tested yet.
package singularity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/agent"
	"trajgen/sandbox/internal/probe"
	"trajgen/sandbox/internal/state"
)

var settings = []sandbox.Setting{
	{Name: "program", Help: "apptainer or singularity (default: the first of these in PATH)"},
	{Name: "image", Help: "of sandboxes whose task names none: docker://NAME, a .sif file or a directory", Env: "TRAJGEN_IMAGE"},
	{Name: "fakeroot", Help: "true makes commands root inside, as installing packages wants; needs an entry in /etc/subuid"},
	{Name: "host_network", Help: "true offers network full as what an ordinary user can have: that of the machine, with its loopback and all that it reaches"},
	{Name: "limits", Help: "hard (default) has cgroups limit memory, processes and CPU, and fails where there are none; none does without"},
}

func init() {
	for _, name := range []string{"singularity", "apptainer"} {
		sandbox.Register(name, sandbox.Kind{
			About:    "containers of Apptainer or Singularity, for clusters; no daemon and no root",
			Open:     func(opts sandbox.Options) (sandbox.Backend, error) { return open(name, opts) },
			Settings: settings,
			Sweep:    sweep,
		})
	}
}

const selfTestTime = 10 * time.Minute // the self-test may have to fetch an image

// backend makes instances with one program.
type backend struct {
	*service
	set        *agent.Set
	guarantees sandbox.Guarantees
}

func open(name string, opts sandbox.Options) (sandbox.Backend, error) {
	c, err := parse(opts.Settings)
	if err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	instance, err := state.Create(opts.StateDir, state.Owner{
		Backend: name, PID: os.Getpid(), Settings: map[string]string{"program": c.program, "state": opts.StateDir},
	})
	if err != nil {
		return nil, err
	}
	b := &backend{guarantees: c.claims()}
	b.guarantees.Backend = name
	b.set = agent.NewSet(name, instance, opts.Logger)
	if b.service, err = newService(c, instance, opts.Logger); err == nil {
		err = b.selfTest()
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Guarantees returns what the self-test found.
func (b *backend) Guarantees() sandbox.Guarantees { return b.guarantees }

// Open starts an instance.
func (b *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Complete(sandbox.Guarantees{Network: b.guarantees.Network, Images: true})
	if err == nil && spec.From != nil {
		err = errors.New("instances have no snapshots")
	}
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	inner := spec
	inner.Image = ""
	img, err := b.find(ctx, spec.Image)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	if inner.Workdir == "" {
		inner.Workdir = "/workspace"
	}
	return b.set.Open(ctx, spec.ID, func(ctx context.Context) (agent.Machine, error) {
		m, err := b.start(ctx, inner, img)
		if err != nil {
			return nil, err
		}
		return m, nil
	})
}

// Close stops all instances.
func (b *backend) Close() error { return b.set.Close(func(err error) error { return err }) }

// claims returns the guarantees that the program's options should give.
func (c *config) claims() sandbox.Guarantees {
	limits := map[string]string{
		sandbox.LimitMemory: "hard", sandbox.LimitProcesses: "hard", sandbox.LimitCPU: "hard",
		sandbox.LimitDisk: "none", sandbox.LimitInodes: "none", sandbox.LimitFiles: "soft",
	}
	missing := []string{
		"a limit of disk: the working directory lies in the state directory",
		"network none has a loopback",
	}
	networks := []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback}
	if c.hostNetwork {
		networks = append(networks, sandbox.NetworkFull)
		missing = append(missing, "a network of its own with network full: it is the machine's, as the setting host_network says")
	} else {
		missing = append(missing, "networks allowlist and full: use native, which refuses what must not be reached; or the setting host_network")
	}
	if !c.limits {
		limits[sandbox.LimitMemory], limits[sandbox.LimitProcesses], limits[sandbox.LimitCPU] = "none", "none", "none"
		missing = append(missing, "limits of memory, processes and CPU: they were switched off by the setting limits")
	}
	return sandbox.Guarantees{
		Level: sandbox.LevelUser, Network: networks, Images: true, Limits: limits, Missing: missing,
		Isolation: map[string]string{"files": "own", "processes": "own", "network": "own", "ids": "host", "calls": "none", "kernel": "shared"},
	}
}

// selfTest probes an instance. The guarantees are what it finds.
func (b *backend) selfTest() error {
	c, g := b.config, &b.guarantees
	if c.image == "" {
		g.Level = sandbox.LevelNone
		g.Isolation = map[string]string{"files": "none", "processes": "none", "network": "none", "ids": "host", "calls": "none", "kernel": "shared"}
		g.Missing = append(g.Missing, "a look inside: name an image with the setting image, and isolation is measured in it when the backend is opened")
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), selfTestTime)
	defer cancel()
	sb, err := b.Open(ctx, sandbox.Spec{ID: "self-test", Network: sandbox.NetworkNone, ReadOnly: probe.Folder})
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	facts, err := probe.Look(ctx, sb)
	if err := errors.Join(err, sb.Close()); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	if facts.Processes > 10 || !facts.Unreachable || len(facts.Interfaces) > 0 || !facts.NoNewPrivs {
		return fmt.Errorf("self-test: the instance is not closed: %+v", facts)
	}
	g.Isolation["ids"], g.FixedFolder = facts.IDs, facts.FixedFolder
	if facts.Filtered {
		g.Isolation["calls"] = "filtered"
	} else {
		g.Missing = append(g.Missing, "a filter of system calls")
	}
	if os.Getuid() == 0 && facts.IDs == "host" {
		g.Level = sandbox.LevelNone
		g.Missing = append(g.Missing, "ids of its own: run as an ordinary user; root inside is this machine's root here, who may write its /proc/sys")
	} else if facts.IDs != "shifted" {
		g.Missing = append(g.Missing, "user ids of its own: the setting fakeroot gives them to an ordinary user with an entry in /etc/subuid")
	} else if c.limits {
		g.Level = sandbox.LevelStrong
	}
	return nil
}

// config is the parsed settings.
type config struct {
	program     string
	image       string
	fakeroot    bool
	hostNetwork bool
	limits      bool
}

func parse(values map[string]string) (*config, error) {
	c := &config{program: values["program"], image: values["image"], limits: true}
	var errs []error
	if c.program == "" {
		for _, name := range []string{"apptainer", "singularity"} {
			if path, err := exec.LookPath(name); err == nil {
				c.program = path
				break
			}
		}
		if c.program == "" {
			errs = append(errs, errors.New("neither apptainer nor singularity is in PATH: install one, load its module, or name it with the setting program"))
		}
	} else if path, err := exec.LookPath(c.program); err != nil {
		errs = append(errs, fmt.Errorf("setting program: %w", err))
	} else {
		c.program = path
	}
	for name, to := range map[string]*bool{"fakeroot": &c.fakeroot, "host_network": &c.hostNetwork} {
		switch values[name] {
		case "", "false":
		case "true":
			*to = true
		default:
			errs = append(errs, fmt.Errorf("setting %s: %q is neither true nor false", name, values[name]))
		}
	}
	switch values["limits"] {
	case "", "hard":
	case "none":
		c.limits = false
	default:
		errs = append(errs, fmt.Errorf("setting limits: unknown value %q (have hard, none)", values["limits"]))
	}
	return c, errors.Join(errs...)
}

// sweep stops the instances of a dead runner.
func sweep(ctx context.Context, instance sandbox.Instance) error {
	if instance.Settings["program"] == "" {
		return nil // the runner died before it began
	}
	s := &service{
		config: &config{program: instance.Settings["program"]}, mark: instance.Name,
		dir: filepath.Join(instance.Settings["state"], instance.Name),
	}
	if err := s.stopAll(ctx); err != nil {
		return err
	}
	return s.clear()
}
