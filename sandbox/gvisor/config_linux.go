package gvisor

import (
	"fmt"
	"os"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/self"
)

// The part of the OCI runtime specification that runsc needs.

type config struct {
	Version  string         `json:"ociVersion"`
	Process  process        `json:"process"`
	Root     map[string]any `json:"root"`
	Hostname string         `json:"hostname"`
	Mounts   []mount        `json:"mounts"`
	Linux    linux          `json:"linux"`
}

type process struct {
	User         map[string]int      `json:"user"`
	Args         []string            `json:"args"`
	Env          []string            `json:"env"`
	Dir          string              `json:"cwd"`
	Capabilities map[string][]string `json:"capabilities"`
	Limits       []limit             `json:"rlimits"`
	NoNewPrivs   bool                `json:"noNewPrivileges"`
}

type limit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

type mount struct {
	At      string   `json:"destination"`
	Type    string   `json:"type"`
	Source  string   `json:"source"`
	Options []string `json:"options,omitempty"`
}

type linux struct {
	Namespaces []map[string]string `json:"namespaces"`
	Cgroup     string              `json:"cgroupsPath,omitempty"`
	Resources  map[string]any      `json:"resources,omitempty"`
}

// capabilities are those that the agent leaves to commands.
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_NET_BIND_SERVICE", "CAP_SETFCAP",
}

const (
	// sharedMemory bounds the files in /dev/shm, in bytes.
	sharedMemory = 64 << 20
	// testsSize is reserved for a verifier's files, even when all else is full.
	testsSize = 64 << 20
	// kernelMemory is what gVisor needs beside the sandbox's memory and the files that it holds there.
	kernelMemory = 128 << 20
)

func (m *machine) config(rootfs string, spec *sandbox.Spec) *config {
	args := []string{guest.Program, self.Helper, "agent", "bare"}
	if spec.Workdir != "" {
		args = append(args, "--workdir", spec.Workdir)
	}
	c := &config{
		Version: "1.0.0", Hostname: "sandbox", Root: map[string]any{"path": rootfs},
		Process: process{
			User: map[string]int{"uid": 0, "gid": 0}, Args: args, Dir: "/", NoNewPrivs: true,
			Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
			Capabilities: map[string][]string{"bounding": capabilities, "effective": capabilities, "permitted": capabilities},
			// Limits that the agent would set, except the first, of which the agent needs more itself: most can only be set
			// here.
			Limits: []limit{
				{"RLIMIT_NOFILE", 1 << 16, 1 << 16}, {"RLIMIT_CORE", 0, 0}, {"RLIMIT_MEMLOCK", 64 << 10, 64 << 10},
				{"RLIMIT_SIGPENDING", 4096, 4096}, {"RLIMIT_MSGQUEUE", 128 << 10, 128 << 10},
			},
		},
		Mounts: []mount{
			{At: "/proc", Type: "proc", Source: "proc"},
			{At: "/dev", Type: "tmpfs", Source: "dev"},
			{At: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"mode=1777", "size=" + fmt.Sprint(min(spec.Limits.Disk, sharedMemory))}},
			{At: guest.Tests, Type: "tmpfs", Source: "tests", Options: []string{"mode=755", "size=" + fmt.Sprint(testsSize)}},
			bind(m.agent(), guest.Program),
		},
	}
	c.Mounts = append(c.Mounts, m.root.mounts...)
	if m.folder != "" {
		c.Mounts = append(c.Mounts, bind(m.folder, "/"+spec.ReadOnly.Name))
	}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		c.Linux.Namespaces = append(c.Linux.Namespaces, map[string]string{"type": kind})
	}
	if os.Getuid() == 0 {
		c.Linux.Cgroup = "/trajgen-" + m.unit()
		c.Linux.Resources = map[string]any{"memory": map[string]int64{"limit": spec.Limits.Memory + spec.Limits.Disk + sharedMemory + testsSize + kernelMemory}}
		if cpus := spec.Limits.CPUs; cpus > 0 {
			c.Linux.Resources["cpu"] = map[string]int64{"period": 100_000, "quota": int64(cpus * 100_000)}
		}
	}
	return c
}

func bind(from, to string) mount {
	return mount{At: to, Type: "bind", Source: from, Options: []string{"rbind", "ro", "nosuid", "nodev"}}
}

// sticky maps the sticky bit, which os.FileMode keeps elsewhere.
func sticky(mode int64) os.FileMode {
	if mode&0o1000 != 0 {
		return os.ModeSticky
	}
	return 0
}
