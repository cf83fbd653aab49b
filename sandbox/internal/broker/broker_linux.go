package broker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/cgroup"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/self"
	"trajgen/sandbox/internal/state"
	"trajgen/sandbox/internal/wire"
)

// Descriptors that the broker inherits from the runner: a socket, and the program for helpers.
const (
	RunnerFD = 3 + iota
	ProgramFD
)

type broker struct {
	runner  *wire.Conn
	sending sync.Mutex
	state   *state.Instance
	groups  *cgroup.Tree
	image   int          // a memory file of the guest.Image, for all guests
	host    func() error // makes hostDir, the first time
	program string       // the executable of guests
	ids     ids

	snapshots snapshots
	forking   sync.Mutex // held while a guest is forked

	handling sync.WaitGroup // requests in progress

	mu     sync.Mutex
	ending bool
	boxes  map[string]*box
}

func init() { self.Role(Name, run) }

// run runs the broker until the runner closes its socket or dies; it does not return.
func run() {
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) // a memory file has no name for it
	_ = unix.CloseRange(RunnerFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	// The runner decides when to end; Ctrl-C at the terminal is for the runner only.
	signal.Ignore(unix.SIGINT, unix.SIGHUP, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	unix.Umask(0o022)
	runner, err := wire.Polled(RunnerFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, Name+" is started by the program itself")
		os.Exit(2)
	}
	b := &broker{runner: runner, boxes: map[string]*box{}, snapshots: snapshots{all: map[string]*snapshot{}}}
	ready, err := b.begin()
	if err != nil {
		ready.Err = err.Error()
	}
	var e wire.Encoder
	e.Add(&ready)
	if sendErr := runner.Send(e.Bytes); err == nil && sendErr == nil {
		b.serve()
	}
	if err := b.end(); err != nil {
		fmt.Fprintln(os.Stderr, "clean up:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (b *broker) begin() (Ready, error) {
	message, _, err := b.runner.Recv()
	if err != nil {
		return Ready{}, err
	}
	var c Config
	d := wire.NewDecoder(message)
	d.Take(&c)
	if d.Err() != nil {
		return Ready{}, d.Err()
	}
	b.program = guest.Program
	if c.Guests {
		b.program = "/proc/self/exe"
	}
	b.ids.kind = c.IDs
	if b.ids.kind == IDsOwn {
		// As an ordinary user, this would also keep us from writing our guests' id maps.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return Ready{}, err
		}
	}
	if b.ids.kind == IDsShared {
		// Each sandbox has an owner of its own below this user, whose quota all of them share.
		if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("32"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Ready{}, err
		}
	}
	// Different ids in each run keep the kernel's accounts of runners apart.
	b.ids.ranges.Store(uint32(c.Owner) * 31)
	if b.state, err = state.Create(c.StateDir, state.Owner{Backend: "native", PID: int(c.Owner)}); err != nil {
		return Ready{}, err
	}
	if b.groups, err = cgroup.Open(b.state.Name, c.Cgroups, b.state.SetCgroups); err != nil {
		return Ready{}, err
	}
	if b.ids.kind == IDsShared {
		b.groups.As = ownedBy
	}
	image, err := enterImage(b.state.Dir, c.HostPaths, c.Images)
	if err != nil {
		return Ready{}, err
	}
	b.host = sync.OnceValue(func() error { return makeHostDir(image.Shared(), b.ids.kind) })
	var e wire.Encoder
	e.Add(&image)
	if b.image, err = wire.SealedFile(e.Bytes); err != nil {
		return Ready{}, err
	}
	return Ready{Memory: b.groups.Memory, Processes: b.groups.Processes, CPU: b.groups.CPU, Groups: b.groups.Paths, Missing: b.groups.Missing}, nil
}

func (b *broker) serve() {
	for {
		message, fds, err := b.runner.Recv()
		if err != nil {
			return
		}
		b.handling.Go(func() {
			defer wire.CloseAll(fds)
			b.handle(wire.NewDecoder(message), fds)
		})
	}
}

func (b *broker) handle(d *wire.Decoder, fds []int) {
	kind, id := d.Int(), d.Int()
	switch kind {
	case KindOpen:
		var o Open
		d.Take(&o)
		socket, err := b.open(&o)
		b.answerGuest(id, socket, err)
	case KindSnapshot:
		b.answer(id, b.snapshot(d.String(), d.String()))
	case KindWake:
		socket, err := b.wake(d.String())
		b.answerGuest(id, socket, err)
	case KindLayer:
		pipe, err := b.export(d.String())
		b.answerGuest(id, pipe, err)
	case KindForget:
		b.answer(id, b.snapshots.forget(d.String()))
	case KindLabel:
		b.answer(id, b.label(d.String(), d.String()))
	case KindClose:
		b.answer(id, b.close(d.String()))
	case KindFolder:
		b.answer(id, keepFolder(d.String(), fds))
	default:
		b.answer(id, errors.New("unknown request"))
	}
}

// answerGuest answers with the socket of a new guest, or another descriptor.
func (b *broker) answerGuest(id int64, socket int, err error) {
	if err != nil {
		b.answer(id, err)
		return
	}
	b.answer(id, nil, socket)
	unix.Close(socket)
}

func (b *broker) answer(id int64, err error, fds ...int) {
	var e wire.Encoder
	e.Int(id)
	text := ""
	if err != nil {
		text = err.Error()
	}
	e.String(text)
	b.sending.Lock()
	defer b.sending.Unlock()
	_ = b.runner.Send(e.Bytes, fds...)
}

// end kills all guests at once, waits for them, and deletes what is on disk and in cgroups.
func (b *broker) end() error {
	// First the guests that exist; then those that were being opened.
	b.mu.Lock()
	b.ending = true
	for _, x := range b.boxes {
		x.kill()
	}
	b.mu.Unlock()
	b.handling.Wait()
	b.mu.Lock()
	ids := slices.Collect(maps.Keys(b.boxes))
	b.mu.Unlock()
	var errs []error
	for _, id := range ids {
		errs = append(errs, b.close(id))
	}
	if b.groups != nil {
		errs = append(errs, b.groups.Close())
	}
	// The next sweep removes the rest, which it finds by the state.
	if err := errors.Join(errs...); err != nil || b.state == nil {
		return err
	}
	return b.state.Close()
}
