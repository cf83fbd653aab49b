package gvisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/agent"
	"trajgen/sandbox/internal/broker"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/state"
)

// runsc is the program, and the directory for its state and for sandboxes.
type runsc struct {
	program, platform string
	dir               string
	logger            *slog.Logger
}

func (r *runsc) agent() string { return filepath.Join(r.dir, "agent") }

// command runs runsc. As root, runsc gets a mount namespace of its own, because it leaves a mount behind.
func (r *runsc) command(args ...string) *exec.Cmd {
	global := []string{"--root=" + filepath.Join(r.dir, "runsc")}
	sys := &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		global = append(global, "--rootless", "--ignore-cgroups")
		sys = nil
	}
	c := exec.Command(r.program, append(global, args...)...)
	c.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "TMPDIR=" + os.TempDir()}
	c.Dir = r.dir
	c.SysProcAttr = sys
	return c
}

func (r *runsc) run(ctx context.Context, args ...string) ([]byte, error) {
	c := r.command(args...)
	var stdout bytes.Buffer
	stderr := sandbox.NewCapture(2<<10, 6<<10)
	c.Stdout, c.Stderr, c.WaitDelay = &stdout, stderr, time.Second
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	if err := c.Wait(); err != nil {
		return nil, fmt.Errorf("runsc %s: %w: %s", args[0], err, strings.TrimSpace(string(stderr.Bytes())))
	}
	return stdout.Bytes(), nil
}

// removeAll ends all sandboxes that runsc still lists.
func (r *runsc) removeAll(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(r.dir, "runsc")); err != nil {
		return nil
	}
	out, err := r.run(ctx, "list", "--quiet")
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range strings.Fields(string(out)) {
		_, err := r.run(ctx, "delete", "--force", id)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// root is an initial file system: a directory that is not changed, or layers of a store.
type root struct {
	dir    string
	mounts []mount
	store  string
	layers []string // the uppermost first
}

// machine is a sandbox of runsc.
type machine struct {
	*runsc
	id      string
	root    root
	spec    sandbox.Spec // for the agent
	folder  string       // the read-only folder on this machine
	flags   []string
	process *agent.Process
}

// unit returns a name that is unique on this machine.
func (m *machine) unit() string { return filepath.Base(m.dir) + "-" + m.id }

func (m *machine) bundle() string { return filepath.Join(m.dir, m.id) }

// bundle writes an OCI bundle for a sandbox.
func (r *runsc) bundle(id string, from root, spec *sandbox.Spec) (agent.Machine, error) {
	m := &machine{runsc: r, id: id, root: from, spec: *spec}
	var err error
	if m.folder, err = spec.ReadOnly.Keep(r.dir); err != nil {
		return nil, err
	}
	m.spec.ReadOnly = spec.ReadOnly.Mounted()
	rootfs := from.dir
	if from.layers != nil {
		rootfs = filepath.Join(m.bundle(), "root")
		for _, dir := range []string{"root", "upper", "work"} {
			if err := os.MkdirAll(filepath.Join(m.bundle(), dir), 0o755); err != nil {
				return nil, err
			}
		}
		if err := fillTmp(filepath.Join(m.bundle(), "upper")); err != nil {
			return nil, err
		}
	} else if err := os.Mkdir(m.bundle(), 0o755); err != nil {
		return nil, err
	}
	m.flags = []string{
		"--platform=" + r.platform, "--overlay2=root:memory,size=" + strconv.FormatInt(spec.Limits.Disk, 10), "--host-uds=none",
	}
	// In a network namespace, gVisor has only the interfaces there: not even a loopback. A namespace needs root.
	if spec.Network == sandbox.NetworkNone && os.Getuid() == 0 {
		m.flags = append(m.flags, "--network=sandbox")
	} else {
		m.flags = append(m.flags, "--network=none")
	}
	content, err := json.Marshal(m.config(rootfs, spec))
	if err != nil {
		return nil, err
	}
	return m, os.WriteFile(filepath.Join(m.bundle(), "config.json"), content, 0o600)
}

// fillTmp makes a temporary directory with an entry below a root: over an empty one, runsc mounts a file system without limits.
func fillTmp(root string) error {
	tmp := filepath.Join(root, "tmp")
	err := os.MkdirAll(filepath.Join(tmp, ".X11-unix"), 0o755)
	return errors.Join(err, os.Chmod(tmp, 0o777|os.ModeSticky), os.Chmod(filepath.Join(tmp, ".X11-unix"), 0o777|os.ModeSticky))
}

// Start starts it, with the agent as its first process.
func (m *machine) Start(context.Context) (io.ReadWriteCloser, error) {
	c := m.command(append(m.flags, "run", "--bundle="+m.bundle(), m.id)...)
	if m.root.layers != nil {
		// The overlay is mounted in the mount namespace, with paths of layers relative to their store: all options must fit
		// into one page.
		options := fmt.Sprintf("userxattr,lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(m.root.layers, ":"),
			filepath.Join(m.bundle(), "upper"), filepath.Join(m.bundle(), "work"))
		script := `mount -t overlay overlay -o "$0" "$1" && shift && exec "$@"`
		c.Path = "/bin/sh"
		c.Args = append([]string{"sh", "-c", script, options, filepath.Join(m.bundle(), "root"), m.program}, c.Args[1:]...)
		c.Dir = m.root.store
	}
	var err error
	m.process, err = agent.Start(c, endTime, m.logger)
	return m.process, err
}

// Spec implements agent.Machine.
func (m *machine) Spec() sandbox.Spec { return m.spec }

// endTime bounds how long the agent may take to end by itself.
const endTime = 10 * time.Second

// End ends it.
func (m *machine) End(ctx context.Context) error {
	if m.process != nil {
		_ = m.process.Close()
		select {
		case <-m.process.Ended():
		case <-time.After(endTime / 2):
			_, err := m.run(ctx, "delete", "--force", m.id)
			m.process.Kill()
			<-m.process.Ended()
			if err != nil {
				return err
			}
		}
	}
	return state.RemoveTree(m.bundle())
}

// makeHost makes the root file system of the default image, which shows the toolchain of this machine.
func (b *backend) makeHost() (root, error) {
	at := filepath.Join(b.dir, "host")
	host, err := broker.Host(b.hostPaths)
	if err != nil {
		return root{}, err
	}
	var errs []error
	for _, d := range guest.Directories {
		errs = append(errs, os.MkdirAll(at+d.Path, 0o755), os.Chmod(at+d.Path, os.FileMode(d.Mode&0o777)|sticky(d.Mode)))
	}
	var mounts []mount
	for _, path := range host.Shared {
		mounts = append(mounts, bind(path, path))
		errs = append(errs, os.MkdirAll(at+path, 0o755))
	}
	for _, f := range host.Files {
		errs = append(errs, os.MkdirAll(filepath.Dir(at+f.Path), 0o755), os.WriteFile(at+f.Path, f.Data, 0o644))
	}
	for _, l := range host.Links {
		errs = append(errs, os.Symlink(l.Target, at+l.Path))
	}
	errs = append(errs, os.WriteFile(at+guest.Program, nil, 0o755), fillTmp(at))
	return root{dir: at, mounts: mounts}, errors.Join(errs...)
}
