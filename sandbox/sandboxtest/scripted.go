package sandboxtest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"trajgen/sandbox"
)

// Scripted is a backend for unit tests: files in memory, and a function that stands in for commands. The zero value works:
// every command succeeds and prints nothing.
type Scripted struct {
	// Command runs a command: it may read Stdin, write to Stdout and Stderr and use the files, and returns how the command
	// ended. It runs in a goroutine of its own; ctx ends when the command is killed. Wait returns its error.
	Command func(ctx context.Context, sb *ScriptedSandbox, cmd sandbox.Command) (sandbox.Exit, error)
	// OpenErr fails every Open.
	OpenErr error

	mu     sync.Mutex
	opened []*ScriptedSandbox
}

// Opened returns all sandboxes, including closed ones.
func (s *Scripted) Opened() []*ScriptedSandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.opened)
}

// Open makes an empty sandbox.
func (s *Scripted) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if s.OpenErr != nil {
		return nil, s.OpenErr
	}
	sb := &ScriptedSandbox{Spec: spec, backend: s, files: map[string]scriptedFile{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, sb)
	return sb, nil
}

// Guarantees claims nothing.
func (s *Scripted) Guarantees() sandbox.Guarantees {
	return sandbox.Guarantees{Backend: "scripted", Level: sandbox.LevelNone, Network: []sandbox.Network{sandbox.NetworkNone}}
}

// Close closes all sandboxes.
func (s *Scripted) Close() error {
	for _, sb := range s.Opened() {
		_ = sb.Close()
	}
	return nil
}

// ScriptedSandbox is a sandbox of a Scripted backend.
type ScriptedSandbox struct {
	Spec    sandbox.Spec
	backend *Scripted

	mu       sync.Mutex
	files    map[string]scriptedFile // by absolute path; directories are implied
	commands []sandbox.Command
	running  map[*scriptedProcess]bool
	pid      int
	gone     bool
}

type scriptedFile struct {
	data []byte
	mode fs.FileMode
}

// Commands returns all commands, in the order of their start.
func (s *ScriptedSandbox) Commands() []sandbox.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Lose makes the sandbox fail with ErrGone from now on, as if its machine had died.
func (s *ScriptedSandbox) Lose() { _ = s.Close() }

// Layout is that of the native backend.
func (s *ScriptedSandbox) Layout() sandbox.Layout {
	layout := sandbox.Layout{Workdir: "/workspace", Home: "/root", Tmp: "/tmp", Tests: "/tests"}
	if f := s.Spec.ReadOnly; f != nil {
		layout.ReadOnly = "/" + f.Name
	}
	return layout
}

// Files are in memory.
func (s *ScriptedSandbox) Files() sandbox.Files { return scriptedFiles{s} }

func (s *ScriptedSandbox) check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if s.gone {
		return fmt.Errorf("sandbox %s: %w", s.Spec.ID, sandbox.ErrGone)
	}
	return nil
}

// Start calls the backend's Command.
func (s *ScriptedSandbox) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if cmd.Helper == "" && len(cmd.Args) == 0 {
		return nil, fmt.Errorf("empty command: %w", sandbox.ErrNotFound)
	}
	if cmd.Stdin == nil {
		cmd.Stdin = strings.NewReader("")
	}
	if cmd.Stdout == nil {
		cmd.Stdout = io.Discard
	}
	if cmd.Stderr == nil {
		cmd.Stderr = io.Discard
	}
	s.pid++
	s.commands = append(s.commands, cmd)
	life, kill := context.WithCancel(context.WithoutCancel(ctx))
	p := &scriptedProcess{pid: 99 + s.pid, kill: kill, done: make(chan struct{}), box: s}
	if s.running == nil {
		s.running = map[*scriptedProcess]bool{}
	}
	s.running[p] = true
	go p.play(life, cmd)
	return p, nil
}

// KillAll kills what runs and waits for it.
func (s *ScriptedSandbox) KillAll(ctx context.Context) error {
	s.mu.Lock()
	err := s.check(ctx)
	running := make([]*scriptedProcess, 0, len(s.running))
	for p := range s.running {
		running = append(running, p)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, p := range running {
		if err := p.Kill(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the sandbox.
func (s *ScriptedSandbox) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for p := range s.running {
		p.kill()
	}
	return nil
}

// Closed reports whether the sandbox was closed.
func (s *ScriptedSandbox) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

type scriptedProcess struct {
	pid  int
	kill context.CancelFunc
	done chan struct{}
	box  *ScriptedSandbox
	exit sandbox.Exit
	err  error
}

func (p *scriptedProcess) play(life context.Context, cmd sandbox.Command) {
	defer close(p.done)
	if command := p.box.backend.Command; command != nil {
		p.exit, p.err = command(life, p.box, cmd)
	}
	p.box.mu.Lock()
	defer p.box.mu.Unlock()
	delete(p.box.running, p)
	switch {
	case p.box.gone:
		p.err = fmt.Errorf("sandbox %s: %w", p.box.Spec.ID, sandbox.ErrGone)
	case life.Err() != nil:
		p.exit, p.err = sandbox.Exit{Code: 137, Signal: 9}, nil
	}
	p.kill()
}

func (p *scriptedProcess) PID() int { return p.pid }

func (p *scriptedProcess) Socket() net.Conn { return nil }

func (p *scriptedProcess) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return sandbox.Exit{}, context.Cause(ctx)
	}
}

func (p *scriptedProcess) Kill(ctx context.Context, _ time.Duration) error {
	p.kill()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type scriptedFiles struct{ box *ScriptedSandbox }

func absolute(name string) string {
	if !path.IsAbs(name) {
		name = "/workspace/" + name
	}
	return path.Clean(name)
}

// lookup requires that the caller holds the lock.
func (f scriptedFiles) lookup(op, name string) (sandbox.Info, error) {
	full := absolute(name)
	if file, ok := f.box.files[full]; ok {
		return sandbox.Info{Name: path.Base(full), Path: full, Size: int64(len(file.data)), Mode: file.mode}, nil
	}
	if l := f.box.Layout(); full == "/" || full == l.Workdir || full == l.Home || full == l.Tmp {
		return sandbox.Info{Name: path.Base(full), Path: full, Mode: fs.ModeDir | 0o755}, nil
	}
	for other := range f.box.files {
		if strings.HasPrefix(other, full+"/") {
			return sandbox.Info{Name: path.Base(full), Path: full, Mode: fs.ModeDir | 0o755}, nil
		}
	}
	return sandbox.Info{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

func (f scriptedFiles) Stat(ctx context.Context, name string) (sandbox.Info, error) {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if err := f.box.check(ctx); err != nil {
		return sandbox.Info{}, err
	}
	return f.lookup("stat", name)
}

func (f scriptedFiles) Read(ctx context.Context, name string, offset, limit int64) ([]byte, sandbox.Info, error) {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if err := f.box.check(ctx); err != nil {
		return nil, sandbox.Info{}, err
	}
	info, err := f.lookup("read", name)
	switch {
	case err != nil:
	case info.Mode.IsDir():
		err = &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	case offset < 0 || limit < 0:
		err = &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	data := f.box.files[info.Path].data
	data = data[min(offset, int64(len(data))):]
	return slices.Clone(data[:min(limit, int64(len(data)))]), info, nil
}

func (f scriptedFiles) Write(ctx context.Context, files ...sandbox.FileWrite) error {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if err := f.box.check(ctx); err != nil {
		return err
	}
	for _, file := range files {
		full, mode := absolute(file.Path), file.Mode.Perm()
		if mode == 0 {
			mode = 0o644
		}
		info, err := f.lookup("write", full)
		if file.Replace {
			for other := range f.box.files {
				if strings.HasPrefix(other, full+"/") {
					delete(f.box.files, other)
				}
			}
		} else if err == nil && info.Mode.IsDir() {
			return &fs.PathError{Op: "write", Path: file.Path, Err: syscall.EISDIR}
		} else if err == nil {
			mode = info.Mode
		}
		f.box.files[full] = scriptedFile{data: slices.Clone(file.Data), mode: mode}
	}
	return nil
}

func (f scriptedFiles) List(ctx context.Context, name string) ([]sandbox.Info, error) {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if err := f.box.check(ctx); err != nil {
		return nil, err
	}
	dir, err := f.lookup("list", name)
	if err == nil && !dir.Mode.IsDir() {
		err = &fs.PathError{Op: "list", Path: name, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	entries := []sandbox.Info{}
	for full := range f.box.files {
		rest, ok := strings.CutPrefix(full, strings.TrimSuffix(dir.Path, "/")+"/")
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(rest, "/")
		if seen[first] {
			continue
		}
		seen[first] = true
		if info, err := f.lookup("list", path.Join(dir.Path, first)); err == nil {
			entries = append(entries, info)
		}
	}
	slices.SortFunc(entries, func(a, b sandbox.Info) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

func (f scriptedFiles) Remove(ctx context.Context, paths ...string) error {
	f.box.mu.Lock()
	defer f.box.mu.Unlock()
	if err := f.box.check(ctx); err != nil {
		return err
	}
	for _, name := range paths {
		full := absolute(name)
		if name == "" || full == "/" {
			return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrPermission}
		}
		maps.DeleteFunc(f.box.files, func(other string, _ scriptedFile) bool {
			return other == full || strings.HasPrefix(other, full+"/")
		})
	}
	return nil
}
