package broker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/cgroup"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/state"
	"trajgen/sandbox/internal/wire"
)

const bootTime = 20 * time.Second

// guestEnv gives a guest two processors: one for the thread that waits for children in a system call, which keeps its processor
// for a while, and one for work. With more, idle ones wake up to look for work.
var guestEnv = append([]string{"GOMAXPROCS=2"}, guest.Env...)

// box is one sandbox.
type box struct {
	id      string
	request *Open
	process atomic.Pointer[os.Process]
	user    int // its root, among the broker's users

	mu     sync.Mutex // held while the guest is started or ended
	ended  bool
	listed string // the name that it is listed under
	group  *cgroup.Group
	broker *wire.Conn // our end; the guest dies when it closes
	lower  stack      // what the sandbox began with
	upper  int        // a detached mount of what its commands wrote; -1 before the guest has one

	closing sync.Once
	closed  error
}

func (b *broker) open(o *Open) (runner int, err error) {
	x := &box{id: o.ID, listed: o.ID, request: o, upper: -1}
	b.mu.Lock()
	if b.ending {
		b.mu.Unlock()
		return -1, errors.New("the runner is gone")
	}
	if b.boxes[o.ID] != nil {
		b.mu.Unlock()
		return -1, fmt.Errorf("sandbox %s exists", o.ID)
	}
	b.boxes[o.ID] = x
	b.mu.Unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(o.ID))
		}
	}()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lower, err = b.snapshots.beginning(o); err != nil {
		return -1, err
	}
	return b.listed(x)
}

// listed starts a sandbox's guest and lists the sandbox.
func (b *broker) listed(x *box) (runner int, err error) {
	if runner, err = b.start(x); err != nil {
		return -1, err
	}
	if err := x.list(b.state); err != nil {
		unix.Close(runner)
		return -1, err
	}
	return runner, nil
}

// list lists a sandbox with its guest; 0 is none, after a snapshot.
func (x *box) list(in *state.Instance) error {
	pid := 0
	if process := x.process.Load(); process != nil {
		pid = process.Pid
	}
	return in.Add(x.listed, pid)
}

// start starts a sandbox's guest, and returns the runner's end of the socket to it.
func (b *broker) start(x *box) (runner int, err error) {
	first := b.ids.first(x.request.Image && !x.request.Host)
	x.user = first
	defer func() {
		if x.group != nil {
			x.group.Release()
		}
	}()
	limit := func() (err error) {
		x.group, err = b.groups.Create(x.id, cgroup.Limits{Memory: x.request.Memory, Processes: int(x.request.Processes), CPU: x.request.CPU}, first)
		return err
	}
	if b.groups.Unified {
		// The guest starts in its cgroup.
		if err := limit(); err != nil {
			return -1, err
		}
	}
	runner, guestRunner, err := wire.Pair()
	if err != nil {
		return -1, err
	}
	defer unix.Close(guestRunner)
	defer func() {
		if err != nil {
			unix.Close(runner)
		}
	}()
	ours, theirs, err := wire.Pair()
	if err != nil {
		return -1, err
	}
	if x.broker, err = wire.Polled(ours); err == nil {
		err = b.spawn(x, first, guestRunner, theirs)
	}
	// Only the guest may hold it now, or its death would not close the socket.
	unix.Close(theirs)
	if err != nil {
		return -1, err
	}
	// The guest takes a while to start; use the time.
	if x.group == nil {
		if err := limit(); err != nil {
			return -1, err
		}
	}
	if err := b.boot(x); err != nil {
		return -1, err
	}
	return runner, x.booted()
}

// ids are the user ids that guests get.
type ids struct {
	kind   int64
	ranges atomic.Uint32
}

// first returns which of the broker's ids is root in a sandbox.
func (d *ids) first(image bool) int {
	switch {
	case d.kind == IDsOwn:
		return FirstID(int(d.ranges.Add(1)))
	case d.kind == IDsShared && !image:
		return 1
	}
	// The files of an image belong to the broker's user, and only their owner may change them.
	return 0
}

// mapping returns the guest's part of the broker's ids.
func (d *ids) mapping(first int) []syscall.SysProcIDMap {
	switch {
	case d.kind == IDsSingle:
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	case d.kind == IDsShared && first == 0:
		// The broker's own map has the same two parts, and the kernel allows no line across both.
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: 1, HostID: 1, Size: PerBox - 1}}
	}
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: first, Size: PerBox}}
}

// boot sends the guest its Boot message.
func (b *broker) boot(x *box) error {
	o := x.request
	layers, err := b.layers(x)
	defer wire.CloseAll(layers)
	if err != nil {
		return err
	}
	m := guest.Boot{Workdir: o.Workdir, Bare: o.Bare, System: o.Image, Host: o.Host, Layers: int64(len(layers)), Fork: len(x.lower.layers) > 0, Single: b.ids.kind == IDsSingle, Shared: b.ids.kind != IDsOwn, Inodes: o.Inodes, Network: o.Network, Ports: o.Ports, Disk: o.Disk, Files: o.Files}
	m.Folder, m.Digest = o.Folder, o.Digest
	if m.Limit = o.Memory; !b.groups.Memory {
		m.Memory = o.Memory
	}
	if !b.groups.Processes {
		m.Processes = o.Processes
	}
	fds := append(append([]int{b.image}, layers...), x.group.Join...)
	m.Join = int64(len(x.group.Join))
	for _, counter := range []struct {
		is *bool
		fd int
	}{{&m.Memories, x.group.Memories}, {&m.Forks, x.group.Forks}, {&m.Slowed, x.group.Slowed}, {&m.Peak, x.group.Peak}} {
		if *counter.is = counter.fd >= 0; *counter.is {
			fds = append(fds, counter.fd)
		}
	}
	if m.Commands = x.group.Commands >= 0; m.Commands {
		fds = append(fds, x.group.Commands)
	}
	var e wire.Encoder
	e.Add(&m)
	if err := x.broker.Send(e.Bytes, fds...); err != nil {
		return fmt.Errorf("tell the guest what to build: %w", err)
	}
	return nil
}

func (b *broker) spawn(x *box, first, runner, lifeline int) error {
	sys := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS,
		UidMappings: b.ids.mapping(first),
		GidMappings: b.ids.mapping(first),
		Setsid:      true,
	}
	if b.ids.kind != IDsSingle {
		sys.GidMappingsEnableSetgroups = true
		// The child does not take mapped ids by itself.
		sys.Credential = &syscall.Credential{Uid: 0, Gid: 0}
	}
	if x.group != nil && x.group.Guest >= 0 {
		// With a cgroup namespace of its own, the guest could not fork into the cgroup of its commands.
		sys.UseCgroupFD, sys.CgroupFD = true, x.group.Guest
	} else {
		sys.Cloneflags |= unix.CLONE_NEWCGROUP
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	stdio := []uintptr{null.Fd(), null.Fd(), uintptr(2), uintptr(runner), uintptr(lifeline)}
	var pid int
	start := func() (err error) {
		// Until its ids are written, a child waits at a pipe, and it holds those of children beside it until it executes. If the
		// broker were killed meanwhile, two of them would wait for each other without end.
		b.forking.Lock()
		defer b.forking.Unlock()
		defer withTimerSlack()()
		pid, _, err = syscall.StartProcess(b.program, []string{guest.Name}, &syscall.ProcAttr{
			Dir: "/", Env: guestEnv, Files: stdio, Sys: sys,
		})
		return err
	}
	switch b.ids.kind {
	case IDsOwn:
		err = ownedBy(first, start)
	case IDsShared:
		err = ownedBy(1+int(b.ids.ranges.Add(1)%(PerBox-1)), start)
	default:
		err = start()
	}
	if err != nil {
		return fmt.Errorf("start the guest in namespaces of its own: %w", err)
	}
	process, err := os.FindProcess(pid)
	x.process.Store(process)
	return err
}

// timerSlack is how late a guest's sleeps may end. The Go runtime's monitor sleeps for 20 microseconds at a time while there is
// work, and caused a third of a guest's wake-ups; longer sleeps do it no harm.
const timerSlack = time.Millisecond

// withTimerSlack gives what this thread starts that slack, until undo is called.
func withTimerSlack() (undo func()) {
	runtime.LockOSThread()
	usual, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0)
	}
	return func() {
		if err == nil {
			_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(usual), 0, 0, 0)
		}
		runtime.UnlockOSThread()
	}
}

// booted waits until the guest is ready.
func (x *box) booted() error {
	timer := time.AfterFunc(bootTime, func() { _ = x.process.Load().Kill() })
	defer timer.Stop()
	message, fds, err := x.broker.Recv()
	if err != nil {
		return fmt.Errorf("the guest died while starting: %w", err)
	}
	d := wire.NewDecoder(message)
	if text := d.String(); text != "" || d.Err() != nil || len(fds) != 1 {
		wire.CloseAll(fds)
		return fmt.Errorf("build the sandbox: %s", text)
	}
	x.upper = fds[0]
	return nil
}

// close ends a sandbox and returns when all of it is gone. An unknown sandbox is gone already.
func (b *broker) close(id string) error {
	b.mu.Lock()
	x := b.boxes[id]
	b.mu.Unlock()
	if x == nil {
		return nil
	}
	x.closing.Do(func() { x.closed = b.destroy(x) })
	return x.closed
}

func (b *broker) destroy(x *box) error {
	// Do not wait for a guest that is starting.
	x.kill()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	errs := []error{b.stop(x)}
	if x.upper >= 0 {
		unix.Close(x.upper)
		x.upper = -1
	}
	errs = append(errs, b.snapshots.release(x.lower), b.state.Remove(x.listed))
	b.mu.Lock()
	delete(b.boxes, x.id)
	b.mu.Unlock()
	return errors.Join(errs...)
}

// label lists a sandbox under another name: a sandbox of the pool gets the name of its user.
func (b *broker) label(id, label string) error {
	b.mu.Lock()
	x := b.boxes[id]
	b.mu.Unlock()
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return nil
	}
	if err := b.state.Remove(x.listed); err != nil {
		return err
	}
	x.listed = label
	return x.list(b.state)
}

func (x *box) kill() {
	if process := x.process.Load(); process != nil {
		_ = process.Kill()
	}
}

// stop ends the guest and everything that runs in the sandbox.
func (b *broker) stop(x *box) error {
	var errs []error
	if process := x.process.Load(); process != nil {
		_ = process.Kill()
		// The kernel ends process 1 only when all others of its namespace are gone.
		await(process.Pid)
		if _, err := process.Wait(); err != nil {
			errs = append(errs, err)
		}
		x.process.Store(nil)
	}
	if x.broker != nil {
		errs = append(errs, x.broker.Close())
		x.broker = nil
	}
	if x.group != nil {
		errs = append(errs, x.group.Remove())
		x.group = nil
	}
	return errors.Join(errs...)
}

// await returns when a child has ended, or when the kernel cannot tell. Unlike a blocking wait, it needs no thread: a thousand
// sandboxes may end at once, and the Go runtime never frees a thread.
func await(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	file := os.NewFile(uintptr(fd), "guest")
	defer file.Close()
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n != 0 || (err != nil && err != unix.EINTR)
	})
}
