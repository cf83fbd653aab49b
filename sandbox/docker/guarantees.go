package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/probe"
)

// probed are limits that a container does not have by chance.
var probed = sandbox.Limits{Memory: 192 << 20, Processes: 77, CPUs: 0.7, Disk: 128 << 20, Files: 333}

// selfTest runs a container of the image without programs and probes it. The result depends on what the probe finds, not on
// what the engine reports.
func (b *backend) selfTest(ctx context.Context) (sandbox.Guarantees, error) {
	facts, err := b.probe(ctx, goarch(b.engine.info.Architecture))
	if err != nil {
		return sandbox.Guarantees{}, err
	}
	g := sandbox.Guarantees{
		Backend: b.name, Level: sandbox.LevelStrong, Network: networks, Images: true, Snapshots: true, WritableSystem: true, Services: true,
		Isolation: map[string]string{"files": "own", "processes": "own", "network": "own", "ids": facts.IDs, "calls": "none", "kernel": "shared"},
		Limits:    map[string]string{sandbox.LimitInodes: "none"},
	}
	lacks := func(what string, args ...any) {
		g.Level = sandbox.LevelUser
		g.Missing = append(g.Missing, fmt.Sprintf(what, args...))
	}
	if facts.Processes > 10 || !facts.NoNewPrivs || !facts.Unreachable || len(facts.Interfaces) > 0 {
		return g, fmt.Errorf("the container is not closed: %+v", facts)
	}
	if facts.Kernel != b.engine.info.KernelVersion {
		g.Isolation["kernel"] = "own"
	}
	if facts.Filtered {
		g.Isolation["calls"] = "filtered"
	} else if g.Isolation["kernel"] == "shared" {
		lacks("a filter of system calls: the engine's kernel or its configuration has none")
	}
	if facts.IDs != "shifted" && g.Isolation["kernel"] == "shared" {
		lacks("user ids of its own: start the engine with userns-remap, or as an ordinary user")
	}
	g.FixedFolder = facts.FixedFolder
	g.Limits[sandbox.LimitMemory] = hard(facts.Memory == probed.Memory+agentMemory)
	g.Limits[sandbox.LimitProcesses] = hard(facts.PIDs == int64(probed.Processes)+agentThreads)
	g.Limits[sandbox.LimitCPU] = hard(facts.CPUs > 0.69 && facts.CPUs < 0.71)
	g.Limits[sandbox.LimitFiles] = hard(facts.Files == int64(probed.Files))
	b.quota = b.quota && facts.Disk > 0 && facts.Disk <= probed.Disk+probed.Disk/8
	g.Limits[sandbox.LimitDisk] = "soft"
	if b.quota {
		g.Limits[sandbox.LimitDisk] = "hard"
	}
	for _, name := range []string{sandbox.LimitMemory, sandbox.LimitProcesses} {
		if g.Limits[name] != "hard" {
			lacks("a hard limit of %s: the engine has no cgroup controller for it", name)
		}
	}
	g.Missing = append(g.Missing, "network allowlist: the engine filters no connections (the native sandbox does, with images, too)")
	if err := b.engine.hasNetwork(ctx, b.network()); err != nil {
		g.Network = slices.DeleteFunc(slices.Clone(networks), func(n sandbox.Network) bool { return n == sandbox.NetworkFull })
		g.Missing = append(g.Missing, fmt.Sprintf("network full: %v (make one, or name another with the setting %q, or use the native sandbox)", err, settingNetwork))
	} else {
		g.Missing = append(g.Missing, "a filter of connections: full network is the engine's, which reaches what the engine's machine does, such as its neighbours and metadata servers")
	}
	if !b.quota {
		g.Missing = append(g.Missing, "a hard limit of disk: the engine's storage has no quotas (overlay2 has them on xfs mounted with pquota); no file may be larger than the limit, and every second or few what was written is measured: past the limit all commands are killed, past twice of it the sandbox; files that were deleted and are still open are not measured")
	}
	return g, nil
}

// hasNetwork returns why full network is not available.
func (e *engine) hasNetwork(ctx context.Context, name string) error {
	if name == "bridge" && e.podman {
		name = "podman" // podman's name of its own network
	}
	if name == "host" || strings.Contains(name, ":") { // such as slirp4netns:OPTIONS, which is not listed
		return nil
	}
	_, err := e.NetworkInspect(ctx, name, client.NetworkInspectOptions{})
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("the engine has no network %q", name)
	}
	return nil // other problems are errors of Open
}

func hard(found bool) string {
	if found {
		return "hard"
	}
	return "none"
}

// probe also finds out which options this engine accepts for containers.
func (b *backend) probe(ctx context.Context, goarch string) (probe.Facts, error) {
	agent, err := b.agents.find(ctx, goarch)
	if err != nil {
		return probe.Facts{}, err
	}
	spec, err := sandbox.Spec{ID: "self-test", Limits: probed, Workdir: "/tmp", ReadOnly: probe.Folder}.Complete(sandbox.Guarantees{Network: networks, Images: true})
	if err != nil {
		return probe.Facts{}, err
	}
	b.quota = true
	x, err := b.run(ctx, spec, agent.nothing, nil)
	for vanished := 0; err != nil && (b.adapt(err) || errors.Is(err, errVanished) && vanished < 5); {
		if errors.Is(err, errVanished) {
			vanished++ // with luck, the engine says why with the next
		}
		x, err = b.run(ctx, spec, agent.nothing, nil)
	}
	if err != nil {
		return probe.Facts{}, err
	}
	facts, err := probe.Look(ctx, x)
	return facts, errors.Join(err, x.Close())
}

// adapt changes the options of containers after a failure, if it knows another way.
func (b *backend) adapt(err error) bool {
	text := strings.ToLower(err.Error())
	switch {
	case b.quota && (strings.Contains(text, "storage-opt") || strings.Contains(text, "storage opt") || strings.Contains(text, "quota")):
		b.quota = false
	case !b.userLimit && strings.Contains(text, "rlimit type 6"): // RLIMIT_NPROC
		b.userLimit = true
	default:
		return false
	}
	return true
}
