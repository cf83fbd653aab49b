package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
	"trajgen/sandbox/carry"
	"trajgen/sandbox/relay"
)

// errNoImage means that an image is gone that the engine had before.
var errNoImage = errors.New("the engine no longer has the image")

// errVanished means that an engine could not prepare a container, and forgot why with it.
var errVanished = errors.New("the engine does not say why")

// What the agent itself needs, beside the limits of commands.
const (
	agentMemory  = 32 << 20
	agentThreads = 32
)

// userLimit is a limit of processes of a user, for engines that would otherwise set one for which they lack the permission. The
// limit that counts is the cgroup's.
const userLimit = 8192

// testsDir has space of its own, even when all else is full.
const (
	testsDir     = "/tests"
	testsOptions = "rw,exec,nosuid,nodev,mode=1777,size=64m"
	testsInodes  = ",nr_inodes=16k" // podman does not know this option
)

// capabilities are those that root keeps: package managers and servers need them. Engines give more by default.
var capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE", "SETFCAP"}

// masked is what engines mask by default, and further files that tell about the machine.
var masked = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
	"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
	"/proc/cmdline", "/proc/config.gz", "/proc/kallsyms", "/proc/modules", "/proc/vmallocinfo",
}

// run makes a container, starts it, and opens the sandbox in it. It has the network of another box, unless beside is nil.
func (b *backend) run(ctx context.Context, spec sandbox.Spec, image *image, beside *box) (*box, error) {
	agent, err := b.agents.find(ctx, image.goarch)
	if err != nil {
		return nil, err
	}
	var folder *volume
	if spec.ReadOnly != nil {
		if folder, err = b.agents.folder(ctx, spec.ReadOnly, agent.nothing); err != nil {
			return nil, err
		}
	}
	workdir := spec.Workdir
	if workdir == "" {
		workdir = image.workdir
	}
	if workdir = path.Clean("/" + workdir); workdir == "/" {
		workdir = "/workspace"
	}
	if spec.Workdir != "" && (spec.Workdir[0] != '/' || !proper(workdir)) {
		return nil, fmt.Errorf("workdir %q is not a place for work (as are /workspace, /home/... or a directory of its own)", spec.Workdir)
	}
	// Finish the call: a cancelled one would not tell whether it made a container.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTime)
	defer cancel()
	created, err := b.engine.ContainerCreate(creating, b.describe(spec, image, agent, folder, beside))
	if err != nil {
		if errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such image") {
			return nil, fmt.Errorf("%w: %w", errNoImage, err)
		}
		return nil, fmt.Errorf("create a container of image %s: %w", image.reference, err)
	}
	x := &box{backend: b, id: spec.ID, container: created.ID, image: image, network: spec.Network, beside: beside}
	err = x.connect(ctx, spec, workdir)
	if err == nil && beside != nil {
		err = x.setNames(ctx, beside)
	}
	if err != nil {
		x.ended()
		return nil, errors.Join(err, x.remove())
	}
	return x, nil
}

// proper reports whether a directory can be a working directory.
func proper(dir string) bool {
	top, _, _ := strings.Cut(dir[1:], "/")
	return top != "dev" && top != "proc" && top != "sys" && "/"+top != agentDir && "/"+top != testsDir
}

// connect starts the container of a box with the agent in it, and connects to the agent.
func (x *box) connect(ctx context.Context, spec sandbox.Spec, workdir string) error {
	engine := x.backend.engine
	if user, _, _ := strings.Cut(x.image.user, ":"); user != "" && user != "root" && user != "0" {
		if err := x.makeWorkdir(ctx, workdir); err != nil {
			return fmt.Errorf("make %s for the user %s of the image: %w", workdir, x.image.user, err)
		}
	}
	attached, err := engine.ContainerAttach(ctx, x.container, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		// An error of the start says better what is wrong with the container, unless the container is gone: podman removes one
		// that it cannot prepare.
		_, startErr := engine.ContainerStart(ctx, x.container, client.ContainerStartOptions{})
		if errdefs.IsNotFound(startErr) || startErr != nil && strings.Contains(startErr.Error(), "no such container") {
			startErr = errVanished
		}
		return errors.Join(fmt.Errorf("attach to the container: %w", err), startErr)
	}
	s := newStream(attached.HijackedResponse)
	if _, err := engine.ContainerStart(ctx, x.container, client.ContainerStartOptions{}); err != nil {
		return errors.Join(fmt.Errorf("start the container: %w", err), s.Close())
	}
	x.relay, err = relay.Dial(ctx, s, relay.Options{Name: x.backend.name, Logger: x.backend.logger})
	if err != nil {
		if said := strings.TrimSpace(string(s.errors.Bytes())); said != "" {
			err = fmt.Errorf("%w; it said %q", err, said)
		}
		return err
	}
	inner := sandbox.Spec{ID: spec.ID, Workdir: workdir, Network: spec.Network, Limits: spec.Limits, Env: map[string]string{}}
	inner.ReadOnly = spec.ReadOnly.Mounted()
	for _, env := range []map[string]string{x.image.env, spec.Env} {
		for name, value := range env {
			if sandbox.IsVariable(name) {
				inner.Env[name] = value
			}
		}
	}
	if x.Sandbox, err = x.relay.Open(ctx, inner); err != nil {
		return err
	}
	if !x.backend.quota {
		x.bound(spec.Limits.Disk)
	}
	if x.image.shared == "" {
		return nil
	}
	return carry.Unpack(ctx, x, sharedDir, x.image.shared)
}

// describe returns the options of a sandbox's container.
func (b *backend) describe(spec sandbox.Spec, image *image, agent, folder *volume, beside *box) client.ContainerCreateOptions {
	limits := spec.Limits
	pids := int64(limits.Processes) + agentThreads
	files := max(int64(limits.Files), 1024)
	no := false
	host := &container.HostConfig{
		AutoRemove:   true,
		NetworkMode:  "none",
		IpcMode:      "private",
		CgroupnsMode: "private",
		LogConfig:    container.LogConfig{Type: "none"}, // the output is the agent's messages, and would be kept on disk
		Init:         &no,
		CapDrop:      []string{"ALL"},
		CapAdd:       capabilities,
		SecurityOpt:  []string{"no-new-privileges"},
		MaskedPaths:  masked,
		Runtime:      b.settings[settingRuntime],
		Mounts:       []mount.Mount{agent.mount(true)},
		Tmpfs:        map[string]string{testsDir: testsOptions},
		Resources: container.Resources{
			Memory:     limits.Memory + agentMemory,
			MemorySwap: limits.Memory + agentMemory,
			PidsLimit:  &pids,
			NanoCPUs:   int64(limits.CPUs * 1e9),
			Ulimits:    []*container.Ulimit{{Name: "nofile", Soft: files, Hard: files}, {Name: "core"}},
		},
	}
	if folder != nil {
		host.Mounts = append(host.Mounts, folder.mount(true))
	}
	hostname := "sandbox"
	host.ExtraHosts = hostsOf(spec)
	switch {
	case beside != nil:
		hostname, host.NetworkMode = "", container.NetworkMode("container:"+beside.container)
	case spec.Network == sandbox.NetworkFull:
		host.NetworkMode = container.NetworkMode(b.network())
	}
	if b.userLimit {
		host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: "nproc", Soft: userLimit, Hard: userLimit})
	}
	if b.quota {
		host.StorageOpt = map[string]string{"size": strconv.FormatInt(limits.Disk, 10)}
	} else {
		host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: "fsize", Soft: limits.Disk, Hard: limits.Disk})
	}
	if b.engine.podman {
		host.SecurityOpt = append(host.SecurityOpt, "mask="+strings.Join(masked, ":"))
	} else {
		host.Tmpfs[testsDir] += testsInodes
	}
	return client.ContainerCreateOptions{
		// A container of the same id may still be in removal.
		Name: "trajgen-" + b.label + "-" + spec.ID + "-" + strconv.Itoa(b.number()),
		Config: &container.Config{
			Image: image.id, User: image.user, Hostname: hostname, Labels: b.labels(spec.ID), WorkingDir: "/",
			Entrypoint: []string{agentPath}, Cmd: []string{"trajgen-helper", "agent", "bare", "--shallow"},
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			// The agent's input ends with the connection of the one that attached to it.
			AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		},
		HostConfig: host,
	}
}

// network returns the network of sandboxes with full network.
func (b *backend) network() string {
	if name := b.settings[settingNetwork]; name != "" {
		return name
	}
	return "bridge"
}

func (b *backend) number() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	return b.count
}

func (b *backend) labels(id string) map[string]string {
	host, _ := os.Hostname()
	labels := map[string]string{labelInstance: b.label, labelOwner: host + ":" + strconv.Itoa(os.Getpid())}
	if id != "" {
		labels[labelID] = id
	}
	return labels
}

// closeTime bounds how long the end of a container is waited for.
const closeTime = 30 * time.Second

// remove ends a container, and waits until it is gone.
func remove(ctx context.Context, engine *engine, id string) error {
	_, err := engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	// The engine may be removing it already, as it does once the agent has ended.
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		_, inspectErr := engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if errdefs.IsNotFound(inspectErr) {
			return nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("remove container %s: %w", id, err)
		}
		if _, again := engine.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); again == nil || errdefs.IsNotFound(again) {
			return nil
		}
	}
}
