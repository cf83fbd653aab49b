// Package local is the sandbox backend of plain processes, without isolation: for trusted work and for tests.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/command"
	"trajgen/sandbox/internal/mark"
	"trajgen/sandbox/internal/self"
	"trajgen/sandbox/internal/state"
)

func init() {
	sandbox.Register("local", sandbox.Kind{
		About: "plain processes in a temporary directory: no isolation, for trusted work", Open: open, Sweep: sweep,
		SharesMachine: true,
	})
}

// backend runs commands as plain processes of this machine, in a temporary directory. It isolates nothing: for trusted work and
// for tests.
type backend struct {
	state *state.Instance

	mu      sync.Mutex
	boxes   map[string]*box
	program *os.File // runs helpers; nil until a helper is needed
	closed  bool
}

func open(opts sandbox.Options) (sandbox.Backend, error) {
	instance, err := state.Create(opts.StateDir, state.Owner{Backend: "local", PID: os.Getpid()})
	if err != nil {
		return nil, err
	}
	return &backend{state: instance, boxes: map[string]*box{}}, nil
}

// sweep kills the commands of a dead runner.
func sweep(_ context.Context, instance sandbox.Instance) error { return mark.KillBelow(instance.Dir) }

func (l *backend) Guarantees() sandbox.Guarantees {
	none := map[string]string{
		sandbox.LimitMemory: "none", sandbox.LimitProcesses: "none", sandbox.LimitCPU: "none", sandbox.LimitDisk: "none", sandbox.LimitInodes: "none", sandbox.LimitFiles: "none",
	}
	return sandbox.Guarantees{
		Backend: "local", Level: sandbox.LevelNone, Limits: none, Network: []sandbox.Network{sandbox.NetworkFull, sandbox.NetworkLoopback},
		Isolation: map[string]string{
			"files": "shared", "processes": "shared", "network": "shared", "ids": "host", "calls": "none", "kernel": "shared",
		},
		Missing: []string{"any isolation: commands run as this user on this machine; use native or docker for what a model writes"},
	}
}

func (l *backend) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	// Loopback is accepted, as it is the default, although the commands have the machine's network.
	spec, err := spec.Complete(l.Guarantees())
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("open sandbox %s: backend is closed: %w", spec.ID, sandbox.ErrGone)
	}
	if l.boxes[spec.ID] != nil {
		return nil, fmt.Errorf("open sandbox %s: it exists", spec.ID)
	}
	b := &box{backend: l, spec: spec, dir: filepath.Join(l.state.Dir, spec.ID), born: mark.Birth(), running: map[*process]bool{}}
	if b.dir, err = makeDirs(b.dir, spec.Workdir); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	if b.root, err = os.OpenRoot(b.dir); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	if err := l.state.Add(spec.ID, 0); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	if f := spec.ReadOnly; f != nil {
		if err := f.Put(ctx, b.Files(), b.Layout().ReadOnly); err != nil {
			return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
		}
	}
	l.boxes[spec.ID] = b
	return b, nil
}

func makeDirs(dir, workdir string) (string, error) {
	if workdir == "" {
		workdir = "workspace"
	}
	for _, d := range []string{"home", "tmp", filepath.Join("/", workdir)} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return "", err
		}
	}
	return filepath.EvalSymlinks(dir)
}

func (l *backend) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	boxes := make([]*box, 0, len(l.boxes))
	for _, b := range l.boxes {
		boxes = append(boxes, b)
	}
	l.mu.Unlock()
	var errs []error
	for _, b := range boxes {
		errs = append(errs, b.Close())
	}
	l.mu.Lock()
	program := l.program // helper opens no program after closing
	l.mu.Unlock()
	if program != nil {
		errs = append(errs, program.Close())
	}
	return errors.Join(append(errs, l.state.Close())...)
}

// box is a directory, and the processes that carry its mark.
type box struct {
	backend *backend
	spec    sandbox.Spec
	dir     string
	born    uint64 // in ticks
	root    *os.Root

	mu      sync.Mutex
	running map[*process]bool
	started uint64 // commands, including those that could not be started
	begun   uint64 // commands that may have run
	killed  uint64 // commands up to this number are dead, with all their descendants
	gone    bool

	closing  sync.Once
	closeErr error
}

func (b *box) Layout() sandbox.Layout {
	workdir := b.spec.Workdir
	if workdir == "" {
		workdir = "workspace"
	}
	layout := sandbox.Layout{
		Workdir: filepath.Join(b.dir, workdir), Home: filepath.Join(b.dir, "home"),
		Tmp: filepath.Join(b.dir, "tmp"), Tests: filepath.Join(b.dir, "tests"),
		Plain: sandbox.PlainEnv(b.spec.Env),
	}
	if f := b.spec.ReadOnly; f != nil {
		layout.ReadOnly = filepath.Join(layout.Home, f.Name)
	}
	return layout
}

func (b *box) Files() sandbox.Files { return files{b} }

func (b *box) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return fmt.Errorf("sandbox %s: %w", b.spec.ID, sandbox.ErrGone)
	}
	return nil
}

// Start starts a process in a session of its own.
func (b *box) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := errors.Join(b.check(), cmd.Check()); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.started++
	p := &process{box: b, number: b.started, Ending: command.NewEnding()}
	b.mu.Unlock()
	c, err := b.command(&cmd, p.mark())
	if err != nil {
		return nil, err
	}
	streams, ends, err := command.Plumb(&cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Args[0], err)
	}
	defer ends.Close()
	p.cmd, p.streams = c, streams
	if cmd.TTY != nil {
		streams.Settle()
		master, slave, err := openTerminal(command.Sized(*cmd.TTY))
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", c.Args[0], err)
		}
		streams.Attach(master, cmd.Stdout, p.Ended)
		ends.Stdin, ends.Stdout, ends.Stderr = slave, slave, slave
		c.SysProcAttr.Setctty, c.SysProcAttr.Ctty = true, 0
	}
	// A nil *os.File in an interface would not be nil.
	if ends.Stdin != nil {
		c.Stdin = ends.Stdin
	}
	if ends.Stdout != nil {
		c.Stdout = ends.Stdout
	}
	if ends.Stderr != nil {
		c.Stderr = ends.Stderr
	}
	if cmd.Socket {
		conn, child, err := command.SocketPair()
		if err != nil {
			streams.Close()
			return nil, fmt.Errorf("make a socket for %s: %w", c.Args[0], err)
		}
		defer child.Close()
		p.socket, c.ExtraFiles = conn, []*os.File{child}
	}
	if err := p.start(); err != nil {
		streams.Close()
		if p.socket != nil {
			_ = p.socket.Close()
		}
		return nil, err
	}
	streams.Start()
	if cmd.TTY != nil {
		return terminal{p}, nil
	}
	return p, nil
}

func (b *box) command(cmd *sandbox.Command, marked string) (*exec.Cmd, error) {
	layout := b.Layout()
	dir := layout.Workdir
	if cmd.Dir != "" {
		resolved, err := files{b}.resolve("chdir", cmd.Dir)
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(b.dir, resolved)
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &fs.PathError{Op: "chdir", Path: cmd.Dir, Err: syscall.ENOTDIR}
	}
	var err error
	env := command.Environment(layout, b.spec.Env, cmd, dir)
	c := &exec.Cmd{Dir: dir, Env: append(env, mark.Variable+"="+marked), Args: cmd.Args, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if cmd.Helper != "" {
		c.Path, err = b.backend.helper()
		c.Args = append([]string{self.Helper, cmd.Helper}, cmd.Args...)
		return c, err
	}
	c.Path, err = lookPath(cmd.Args[0], dir, env)
	return c, err
}

// lookPath finds a program in the PATH of the command, not in the runner's.
func lookPath(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	cause := syscall.ENOENT
	for _, kv := range env {
		search, ok := strings.CutPrefix(kv, "PATH=")
		if !ok {
			continue
		}
		for _, in := range filepath.SplitList(search) {
			if !filepath.IsAbs(in) {
				in = filepath.Join(dir, in)
			}
			candidate := filepath.Join(in, name)
			info, err := os.Stat(candidate)
			if errors.Is(err, syscall.ENAMETOOLONG) {
				cause = syscall.ENAMETOOLONG
			}
			if err == nil && info.Mode().IsRegular() {
				if info.Mode()&0o111 != 0 {
					return candidate, nil
				}
				cause = syscall.EACCES
			}
		}
	}
	return "", fmt.Errorf("%s: %w: %w", name, sandbox.ErrNotFound, cause)
}

// KillAll kills every process with the mark, until there is none.
func (b *box) KillAll(ctx context.Context) error {
	if err := b.check(); err != nil {
		return err
	}
	return b.killAll(ctx)
}

func (b *box) killAll(ctx context.Context) error {
	b.mu.Lock()
	begun, none := b.begun, b.begun == b.killed
	running := make([]*process, 0, len(b.running))
	for p := range b.running {
		running = append(running, p)
	}
	b.mu.Unlock()
	if none {
		return nil
	}
	for _, p := range running {
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	}
	if err := mark.Kill(b.dir, b.born); err != nil {
		return err
	}
	for _, p := range running {
		select {
		case <-p.Ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.killed = max(b.killed, begun)
	return nil
}

// Close kills everything and deletes the directory.
func (b *box) Close() error {
	b.closing.Do(func() {
		b.mu.Lock()
		b.gone = true
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		errs := []error{b.killAll(ctx), b.root.Close(), state.RemoveTree(b.dir), b.backend.state.Remove(b.spec.ID)}
		b.backend.mu.Lock()
		delete(b.backend.boxes, b.spec.ID)
		b.backend.mu.Unlock()
		b.closeErr = errors.Join(errs...)
	})
	return b.closeErr
}
