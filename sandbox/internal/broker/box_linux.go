package broker

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/cgroup"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

const (
	// firstID and ranges place the user ids of sandboxes where no system has users.
	firstID = 0x40000000
	ranges  = 16384
	perBox  = 65536

	bootTime = 20 * time.Second
)

// guestEnv has a processor for each thread that waits in a system call, which holds on to its own for a while, and one
// for work.
var guestEnv = []string{"GOMAXPROCS=4", "GOTRACEBACK=single"}

// box is one sandbox.
type box struct {
	id      string
	process *os.Process
	group   *cgroup.Group
	broker  *wire.Conn // our end; the guest dies when it closes
	closing sync.Once
	closed  error
}

func (b *broker) open(o *Open) (_ *box, runner int, err error) {
	x := &box{id: o.ID}
	b.mu.Lock()
	if b.boxes[o.ID] != nil {
		b.mu.Unlock()
		return nil, -1, fmt.Errorf("sandbox %s exists", o.ID)
	}
	b.boxes[o.ID] = x
	b.mu.Unlock()
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(o.ID))
		}
	}()
	first := 0
	if b.shifted {
		first = firstID + int(b.ranges.Add(1)%ranges)*perBox
	}
	defer func() {
		if x.group != nil {
			x.group.Release()
		}
	}()
	limit := func() (err error) {
		x.group, err = b.groups.Create(o.ID, o.Memory, int(o.Processes), first)
		return err
	}
	if b.groups.Unified {
		// The guest is born in its group.
		if err := limit(); err != nil {
			return nil, -1, err
		}
	}
	runner, guestRunner, err := wire.Pair()
	if err != nil {
		return nil, -1, err
	}
	defer unix.Close(guestRunner)
	defer func() {
		if err != nil {
			unix.Close(runner)
		}
	}()
	ours, theirs, err := wire.Pair()
	if err != nil {
		return nil, -1, err
	}
	if x.broker, err = wire.Polled(ours); err == nil {
		err = b.spawn(x, first, guestRunner, theirs)
	}
	// The guest alone may hold it now, or its death would go unnoticed.
	unix.Close(theirs)
	if err != nil {
		return nil, -1, err
	}
	// The guest takes its time to start.
	if x.group == nil {
		if err := limit(); err != nil {
			return nil, -1, err
		}
	}
	if err := b.boot(x, o); err != nil {
		return nil, -1, err
	}
	if err := b.state.Add(o.ID, x.process.Pid); err != nil {
		return nil, -1, err
	}
	return x, runner, x.booted()
}

// boot sends what the guest needs to know.
func (b *broker) boot(x *box, o *Open) error {
	m := guest.Boot{Workdir: o.Workdir, Loopback: o.Loopback, Disk: o.Disk, Files: o.Files}
	if !b.groups.Memory {
		m.Memory = o.Memory
	}
	if !b.groups.Processes {
		m.Processes = o.Processes
	}
	fds := append([]int{b.image}, x.group.Join...)
	m.Join = int64(len(x.group.Join))
	if m.Events = x.group.Events >= 0; m.Events {
		fds = append(fds, x.group.Events)
	}
	if m.Commands = x.group.Commands >= 0; m.Commands {
		fds = append(fds, x.group.Commands)
	}
	var e wire.Encoder
	m.Encode(&e)
	if err := x.broker.Send(e.Bytes, fds...); err != nil {
		return fmt.Errorf("tell the guest what to build: %w", err)
	}
	return nil
}

func (b *broker) spawn(x *box, first, runner, lifeline int) error {
	sys := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: first, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: first, Size: 1}},
		Setsid:      true,
	}
	if b.shifted {
		sys.UidMappings[0].Size, sys.GidMappings[0].Size, sys.GidMappingsEnableSetgroups = perBox, perBox, true
		// Mapped ids are not taken on by themselves.
		sys.Credential = &syscall.Credential{Uid: 0, Gid: 0}
	}
	if x.group != nil && x.group.Guest >= 0 {
		// In a cgroup namespace of its own, the guest could not fork into the group of its commands.
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
	pid, handle, err := syscall.StartProcess(b.program, []string{guest.Name}, &syscall.ProcAttr{
		Dir: "/", Env: guestEnv, Files: stdio, Sys: sys,
	})
	_ = handle
	if err != nil {
		return fmt.Errorf("start the guest in namespaces of its own: %w", err)
	}
	x.process, err = os.FindProcess(pid)
	return err
}

// booted waits until the guest is ready.
func (x *box) booted() error {
	timer := time.AfterFunc(bootTime, func() { _ = x.process.Kill() })
	defer timer.Stop()
	message, _, err := x.broker.Recv()
	if err != nil {
		return fmt.Errorf("the guest died while starting: %w", err)
	}
	d := wire.NewDecoder(message)
	if text := d.String(); text != "" || d.Err() != nil {
		return fmt.Errorf("build the sandbox: %s", text)
	}
	return nil
}

// close ends a sandbox and returns when all of it is gone. An unknown one is gone already.
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
	var errs []error
	if x.process != nil {
		_ = x.process.Kill()
		// The kernel lets process 1 go only when all others of its namespace are gone.
		if _, err := x.process.Wait(); err != nil {
			errs = append(errs, err)
		}
	}
	if x.broker != nil {
		errs = append(errs, x.broker.Close())
	}
	if x.group != nil {
		errs = append(errs, x.group.Remove())
	}
	errs = append(errs, b.state.Remove(x.id))
	b.mu.Lock()
	delete(b.boxes, x.id)
	b.mu.Unlock()
	return errors.Join(errs...)
}
