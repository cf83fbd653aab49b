package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/box"
	"trajgen/sandbox/internal/embedded"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/mark"
	"trajgen/sandbox/internal/state"
	"trajgen/sandbox/internal/wire"
)

// firstUser is the first user of root's sandboxes, in a range where systems have no users.
const (
	firstUser = 0x60000000
	users     = 1 << 24
)

// landlockReadable are the system's directories, which sandboxes read with the permissions of an ordinary user.
var landlockReadable = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc"}

// landlockNetworks are: without any socket, or with those of the machine: a loopback of its own needs a namespace.
var landlockNetworks = []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkFull}

// landlock is the fallback of native where no namespaces can be made. Each sandbox is a directory with a guest, whose commands
// may write nowhere else. As root, each sandbox has a user of its own.
type landlock struct {
	opts       options
	state      *state.Instance
	guarantees sandbox.Guarantees
	readable   []string
	programs   *embedded.Programs // nil when none are built in

	mu     sync.Mutex
	boxes  map[*directory]bool
	users  int
	closed bool
}

// directory is the owner of one box.
type directory struct {
	*box.Box
	landlock *landlock
	id       string
	path     string
	born     uint64 // in ticks
	process  *os.Process
}

// openLandlock opens the fallback; why is the reason that native cannot make namespaces.
func openLandlock(opts options, why error) (sandbox.Backend, error) {
	version := guest.LandlockVersion()
	if version == 0 {
		return nil, errors.New("this kernel has no landlock, either")
	}
	builtIn, err := embedded.Unpack()
	if err != nil {
		return nil, err
	}
	instance, err := state.Create(opts.StateDir, state.Owner{
		Backend: "native", PID: os.Getpid(), Settings: map[string]string{"level": string(sandbox.LevelLandlock)},
	})
	if err != nil {
		return nil, err
	}
	l := &landlock{
		opts: opts, state: instance, boxes: map[*directory]bool{}, readable: slices.Concat(landlockReadable, opts.HostPaths),
		programs: builtIn,
	}
	l.guarantees = sandbox.Guarantees{
		Backend: "native", Level: sandbox.LevelLandlock, Network: landlockNetworks, FixedSystem: true, FixedFolder: true,
		Isolation: map[string]string{
			"files": "filtered", "processes": "shared", "network": "shared", "ids": "host", "calls": "filtered", "kernel": "shared",
		},
		Limits: map[string]string{
			sandbox.LimitMemory: "soft", sandbox.LimitProcesses: "none", sandbox.LimitCPU: "none", sandbox.LimitDisk: "soft", sandbox.LimitInodes: "none", sandbox.LimitFiles: "none",
		},
		Missing: []string{
			fmt.Sprintf("namespaces: %v", why),
			"processes and the names of files are the machine's; /tmp is closed (there is a TMPDIR instead), and there is no shared memory (/dev/shm) nor a limit of processes",
			softMemory,
			"sockets that are files: commands connect to any that their user may connect to",
			"networks of its own: none is without sockets, full is the machine's own, with its loopback and all that it reaches",
		},
	}
	if os.Getuid() == 0 {
		l.guarantees.Isolation["ids"] = "own"
		// The sandboxes' users must be able to reach their directories.
		for _, dir := range []string{opts.StateDir, instance.Dir} {
			if err := os.Chmod(dir, 0o711); err != nil {
				return nil, errors.Join(err, instance.Close())
			}
		}
	} else {
		l.guarantees.Missing = append(l.guarantees.Missing, "a user of their own: commands may change the modes of this user's files, though not read them")
	}
	if version < 6 {
		l.guarantees.Missing = append(l.guarantees.Missing, fmt.Sprintf("signals and abstract sockets are not confined: landlock version %d, want 6", version))
	}
	if err := l.selfTest(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// landlockProbe prints each way out that should be closed and is not.
const landlockProbe = `for f in /.probe /usr/.probe /tmp/.probe /etc/.probe /var/tmp/.probe "$1/.probe" "$2/.probe"; do (: > $f) 2>/dev/null && echo "writes $f"; done
for f in "$1"/*.json /etc/shadow /root/.profile /proc/1/environ; do (: < "$f") 2>/dev/null && echo "reads $f"; done
while read -r name value; do case $name in Seccomp:|NoNewPrivs:|CapEff:) echo "$name $value";; esac; done < /proc/self/status
[ -e "$2/file" ] && echo folder; echo files; ulimit -Hn`

func (l *landlock) selfTest() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	folder := sandbox.NewFolder("folder", sandbox.FileWrite{Path: "file"})
	sb, err := l.Open(ctx, sandbox.Spec{ID: "self-test", Limits: sandbox.Limits{Files: 300}, ReadOnly: folder})
	if err != nil {
		return err
	}
	args := []string{"/bin/sh", "-c", landlockProbe, "sh", l.state.Dir, sb.Layout().ReadOnly}
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: args}, sandbox.RunOptions{})
	if err = errors.Join(err, sb.Close()); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	text := string(result.Stdout.Bytes())
	for _, must := range []string{"Seccomp: 2", "NoNewPrivs: 1", "CapEff: 0000000000000000", "folder"} {
		if !strings.Contains(text, must) {
			return fmt.Errorf("self-test: the sandbox is not closed: no %q in %q, %q", must, text, result.Stderr.Bytes())
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "writes ") || strings.HasPrefix(line, "reads ") {
			return fmt.Errorf("self-test: the sandbox is not closed: it %s", strings.TrimSpace(line))
		}
	}
	if strings.Contains(text, "files\n300\n") {
		l.guarantees.Limits[sandbox.LimitFiles] = "hard"
	}
	return nil
}

func (l *landlock) Guarantees() sandbox.Guarantees { return l.guarantees }

func (l *landlock) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if spec.Network == "" {
		spec.Network = sandbox.NetworkNone
	}
	spec, err := spec.Complete(sandbox.Guarantees{Network: landlockNetworks})
	if !slices.Contains(landlockNetworks, spec.Network) {
		err = errors.Join(err, errors.New("without namespaces there is either no network, or the machine's own with all that it reaches"))
	}
	if err == nil && spec.From != nil {
		err = errors.New("there are no snapshots without namespaces")
	}
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
	for other := range l.boxes {
		if other.id == spec.ID {
			return nil, fmt.Errorf("open sandbox %s: it exists", spec.ID)
		}
	}
	d, err := l.open(spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", spec.ID, err)
	}
	return struct{ sandbox.Sandbox }{d.Box}, nil
}

// open requires that the caller holds the lock.
func (l *landlock) open(spec sandbox.Spec) (_ *directory, err error) {
	d := &directory{landlock: l, id: spec.ID, path: filepath.Join(l.state.Dir, spec.ID), born: mark.Birth()}
	workdir := spec.Workdir
	if workdir == "" {
		workdir = "workspace"
	}
	layout := sandbox.Layout{
		Workdir: filepath.Join(d.path, filepath.Join("/", workdir)), Home: d.path + "/home", Tmp: d.path + "/tmp", Tests: d.path + "/tests",
		Plain: sandbox.PlainEnv(spec.Env),
	}
	spec.Env = maps.Clone(spec.Env)
	if spec.Env == nil {
		spec.Env = map[string]string{}
	}
	if _, ok := spec.Env["USER"]; !ok {
		spec.Env["USER"] = "sandbox"
	}
	spec.Env[mark.Variable] = d.path
	readable := l.readable
	if f := spec.ReadOnly; f != nil {
		at, err := f.Keep(l.state.Dir)
		if err != nil {
			return nil, err
		}
		layout.ReadOnly, readable = at, append(slices.Clone(readable), at)
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 {
		l.users++
		id := firstUser + (os.Getpid()*4099+l.users)%users
		sys.Credential = &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.remove())
		}
	}()
	for _, dir := range []string{d.path, layout.Workdir, layout.Home, layout.Tmp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if sys.Credential != nil {
		id := int(sys.Credential.Uid)
		err = filepath.WalkDir(d.path, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, id, id))
		})
		if err != nil {
			return nil, err
		}
	}
	runner, err := l.start(d, sys, &guest.Directory{
		Workdir: layout.Workdir, Tests: layout.Tests, Own: d.path, Readable: readable, Offline: spec.Network == sandbox.NetworkNone,
		Files: int64(spec.Limits.Files), Memory: spec.Limits.Memory, FileSize: spec.Limits.Disk,
	})
	if err != nil {
		return nil, err
	}
	if err := l.state.Add(spec.ID, d.process.Pid); err != nil {
		unix.Close(runner)
		return nil, err
	}
	if d.Box, err = box.New(d, spec, layout, runner, l.opts.box()); err != nil {
		return nil, err
	}
	l.boxes[d] = true
	return d, nil
}

// start runs the guest of a directory and returns the socket to it.
func (l *landlock) start(d *directory, sys *syscall.SysProcAttr, what *guest.Directory) (runner int, err error) {
	programs, err := openPrograms(l.programs)
	defer programs.close()
	if err != nil {
		return -1, err
	}
	program := programs.broker
	if !programs.guests {
		program = programs.helper
	}
	ours, theirs, err := wire.Pair()
	if err != nil {
		return -1, err
	}
	socket := os.NewFile(uintptr(theirs), "guest")
	defer socket.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		unix.Close(ours)
		return -1, err
	}
	defer null.Close()
	files := []*os.File{null, null, os.Stderr, socket, program}
	d.process, err = os.StartProcess(lastOf(files), []string{guest.LandlockName}, &os.ProcAttr{
		Dir: "/", Env: guest.Env, Files: files, Sys: sys,
	})
	if err != nil {
		unix.Close(ours)
		return -1, fmt.Errorf("start the guest: %w", err)
	}
	conn := wire.Blocking(ours)
	var e wire.Encoder
	e.Add(what)
	timer := time.AfterFunc(closeTime, func() { _ = d.process.Kill() })
	defer timer.Stop()
	socket.Close() // an open copy would hide the guest's death
	err = conn.Send(e.Bytes, int(programs.helper.Fd()))
	if err == nil {
		var message []byte
		if message, _, err = conn.Recv(); err == nil {
			from := wire.NewDecoder(message)
			if text := from.String(); text != "" || from.Err() != nil {
				err = errors.New(text)
			}
		}
	}
	if err != nil {
		unix.Close(ours)
		return -1, fmt.Errorf("confine the guest: %w", err)
	}
	return ours, nil
}

// remove removes what is left of a sandbox whose socket is closed.
func (d *directory) remove() error {
	var errs []error
	if d.process != nil {
		timer := time.AfterFunc(closeTime, func() { _ = d.process.Kill() })
		_, err := d.process.Wait()
		timer.Stop()
		errs = append(errs, err)
	}
	// Processes of a guest that was killed may be left.
	errs = append(errs, mark.Kill(d.path, d.born), state.RemoveTree(d.path), d.landlock.state.Remove(d.id))
	return errors.Join(errs...)
}

func (l *landlock) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	boxes := slices.Collect(maps.Keys(l.boxes))
	l.mu.Unlock()
	var errs []error
	for _, b := range boxes {
		errs = append(errs, b.Close())
	}
	return errors.Join(append(errs, l.state.Close())...)
}

// End implements box.Owner.
func (d *directory) End() error {
	// The guest ends when its socket is closed.
	err := errors.Join(d.Lost(), d.remove())
	d.landlock.mu.Lock()
	defer d.landlock.mu.Unlock()
	delete(d.landlock.boxes, d)
	return err
}

// refused reports whether namespaces could not be made because the kernel lacks or forbids them.
func refused(err error) bool {
	for _, errno := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSPC, unix.EINVAL, unix.EUSERS} {
		if errors.Is(err, errno) || strings.Contains(err.Error(), errno.Error()) {
			return true
		}
	}
	return false
}
