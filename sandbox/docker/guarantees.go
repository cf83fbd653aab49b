package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/probe"
)

// probed are limits that nothing has by chance.
var probed = sandbox.Limits{Memory: 192 << 20, Processes: 77, CPUs: 0.7, Disk: 128 << 20, Files: 333}

// selfTest runs a container without an image of anybody's and looks around in it. What the engine says of itself decides
// nothing.
func (b *backend) selfTest(ctx context.Context) (sandbox.Guarantees, error) {
	facts, err := b.probe(ctx, goarch(b.engine.info.Architecture))
	if err != nil {
		return sandbox.Guarantees{}, err
	}
	g := sandbox.Guarantees{
		Backend: b.name, Level: sandbox.LevelStrong, Network: networks, Images: true, Snapshots: true,
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
	g.Limits[sandbox.LimitMemory] = hard(facts.Memory == probed.Memory+agentMemory)
	g.Limits[sandbox.LimitProcesses] = hard(facts.PIDs == int64(probed.Processes)+agentThreads)
	g.Limits[sandbox.LimitCPU] = hard(facts.CPUs > 0.69 && facts.CPUs < 0.71)
	g.Limits[sandbox.LimitFiles] = hard(facts.Files == int64(probed.Files))
	b.quota = b.quota && facts.Disk > 0 && facts.Disk <= probed.Disk+probed.Disk/8
	g.Limits[sandbox.LimitDisk] = hard(b.quota)
	for _, name := range []string{sandbox.LimitMemory, sandbox.LimitProcesses} {
		if g.Limits[name] != "hard" {
			lacks("a hard limit of %s: the engine has no cgroup controller for it", name)
		}
	}
	g.Missing = append(g.Missing, "a filter of connections: full network is the engine's, which reaches what the engine's machine does, such as its neighbours and metadata servers")
	if !b.quota {
		g.Missing = append(g.Missing, "a limit of disk: the engine's storage has no quotas (overlay2 has them on xfs mounted with pquota)")
	}
	return g, nil
}

func hard(found bool) string {
	if found {
		return "hard"
	}
	return "none"
}

// probe finds out on the way what containers can have on this engine.
func (b *backend) probe(ctx context.Context, goarch string) (probe.Facts, error) {
	agent, err := b.agents.find(ctx, goarch)
	if err != nil {
		return probe.Facts{}, err
	}
	spec, err := sandbox.Spec{ID: "self-test", Limits: probed, Workdir: "/tmp"}.Complete(networks, true)
	if err != nil {
		return probe.Facts{}, err
	}
	b.quota = true
	x, err := b.run(ctx, spec, agent.nothing)
	for err != nil && b.adapt(err) {
		x, err = b.run(ctx, spec, agent.nothing)
	}
	if err != nil {
		return probe.Facts{}, err
	}
	facts, err := probe.Look(ctx, x)
	return facts, errors.Join(err, x.Close())
}

// adapt finds another way to run a container, if there is one.
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
