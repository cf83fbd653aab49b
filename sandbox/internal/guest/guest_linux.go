package guest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/self"
	"trajgen/sandbox/internal/wire"
)

// Descriptors that a new guest inherits from the broker.
const (
	RunnerFD = 3 + iota
	BrokerFD
)

// firstCommand is the process number of the first command; the guest's threads have those below it.
const firstCommand = 100

// guest is the state of process 1.
type guest struct {
	runner   *wire.Conn // only one goroutine receives from it
	sending  sync.Mutex
	tree     fileTree
	null     int
	counters Counters
	commands int // a cgroup to fork into, or -1
	limits   standIns
	policy   policy
	helper   string // path of the program for helpers
	bare     *Bare  // nil in a sandbox with a root of its own
	born     time.Time

	forking atomic.Bool // a child may not have become a command yet
	table   commandTable
	forked  chan struct{} // wakes the reaper

	starts chan startRequest // nil when the confined thread receives requests
	files  chan fileRequest

	settler *settler
	garbage garbage
}

func init() {
	if len(os.Args) > 0 && os.Args[0] == Name {
		runtime.LockOSThread() // in an init function, it keeps the first thread for main
	}
}

func init() {
	self.Role(Name, Main)
	self.Role(LandlockName, landlockMain)
}

// Main runs the guest and does not return. All threads but two keep the full capabilities of the namespaces; they only read
// /proc, send signals and wait.
func Main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, Name+" is started by the program itself")
		os.Exit(2)
	}
	_ = unix.CloseRange(RunnerFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	unix.Umask(0o022)
	booted := make(chan *guest)
	onOtherThread(func() { serve(booted) })
	// Meanwhile this thread, the first, does what the first command needs, and then becomes the reaper.
	ignoreSignals()
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(Name+"\x00"))), 0, 0, 0)
	// Make two spare threads: one made between two commands would take a process number from the second.
	for range 2 {
		go func() { _ = unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil) }()
	}
	g := <-booted
	g.reap()
}

// ignoreSignals removes the signal handlers of the Go runtime, except the one for preemption and those in keep. Process 1 gets
// no signal from its own namespace without a handler, so commands cannot end it with SIGTERM or SIGSEGV. Package os/signal
// would need two more threads for this.
//
// A handler that stays blocks no other signals, unlike those of the Go runtime: a signal that is blocked on the first thread,
// and not on others, ends all of them, because Linux then skips its protection of process 1 (complete_signal).
func ignoreSignals(keep ...unix.Signal) {
	keep = append(keep, unix.SIGURG)
	var kept uint64
	for _, sig := range keep {
		kept |= 1 << (sig - 1)
	}
	for sig := unix.Signal(1); sig <= 64; sig++ {
		var action [4]uint64 // struct sigaction of the kernel: handler, flags, restorer, mask
		if slices.Contains(keep, sig) {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0)
			action[3] = kept
		}
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}

// onOtherThread runs f on a thread that is not the process's first. For cgroups, the first thread owns the process's memory: if
// it were a member of the commands' group, an OOM kill there could hit the guest.
func onOtherThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			onOtherThread(f)
			select {} // keeps the first thread occupied
		}
		f()
	}()
}

// usualSlack is the default timer slack, in nanoseconds. The broker gives guests a larger one.
const usualSlack = 50_000

func serve(booted chan<- *guest) {
	// Commands inherit it from this thread, which starts them.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0)
	broker := wire.Blocking(BrokerFD)
	g, upper, err := boot(broker)
	var e wire.Encoder
	if err != nil {
		e.String(err.Error())
		_ = broker.Send(e.Bytes)
		os.Exit(1)
	}
	e.String("")
	if err := broker.Send(e.Bytes, upper); err != nil {
		os.Exit(1)
	}
	unix.Close(upper)
	// Goroutines wait for messages: while a thread waits in a system call, the Go runtime's monitor polls it, which takes
	// longer than a request.
	if g.runner, err = wire.Polled(RunnerFD); err != nil {
		os.Exit(1)
	}
	if broker, err = wire.Polled(BrokerFD); err != nil {
		os.Exit(1)
	}
	g.starts = make(chan startRequest, 16)
	booted <- g
	go func() {
		// The broker sends nothing more. Its end closes when it dies, and the guest must die, too.
		_, _, _ = broker.Recv()
		os.Exit(0)
	}()
	go func() {
		for {
			message, fds, err := g.runner.Recv()
			if err != nil {
				os.Exit(0)
			}
			g.handle(message, fds)
		}
	}()
	for r := range g.starts {
		g.start(r.id, &r.command, r.fds)
	}
}

// boot builds the sandbox inside the new namespaces, and confines the calling thread. upper is a descriptor of all that
// commands will write.
func boot(broker *wire.Conn) (g *guest, upper int, err error) {
	message, fds, err := broker.Recv()
	if err != nil {
		return nil, -1, err
	}
	var b Boot
	d := wire.NewDecoder(message)
	d.Take(&b)
	if d.Err() != nil {
		return nil, -1, d.Err()
	}
	g = &guest{
		runner: wire.Blocking(RunnerFD), tree: fileTree{workdir: b.Workdir, tests: Tests}, counters: NoCounters, commands: -1,
		limits: standIns{limits: newStandIns(&b)}, helper: Program,
	}
	g.counters.Disk = "/"
	g.connect()
	take := func() int {
		fd := fds[0]
		fds = fds[1:]
		return fd
	}
	image, err := takeImage(take())
	if err != nil {
		return nil, -1, err
	}
	layers := make([]int, b.Layers)
	for i := range layers {
		layers[i] = take()
	}
	join := make([]int, b.Join)
	for i := range join {
		join[i] = take()
	}
	if b.Memories {
		g.counters.Memory = take()
	}
	if b.Forks {
		g.counters.Processes = take()
	}
	if b.Slowed {
		g.counters.CPU = take()
	}
	if b.Peak {
		g.counters.Peak, g.counters.Limit = take(), b.Limit
	}
	if b.Commands {
		g.commands = take()
	}
	root := root{boot: &b, image: image, layers: layers}
	if err := root.build(); err != nil {
		return nil, -1, err
	}
	if err := setUpNetwork(g.runner, &b); err != nil {
		return nil, -1, err
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return nil, -1, fmt.Errorf("set the host name: %w", err)
	}
	if g.null, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return nil, -1, fmt.Errorf("open /dev/null: %w", err)
	}
	// If the host runs out of memory, sandboxes are killed before the runner.
	_ = tell("/proc/self/oom_score_adj", "300")
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, -1, fmt.Errorf("become non-dumpable: %w", err)
	}
	if g.settler, err = newSettler(root.lastPID); err != nil {
		return nil, -1, err
	}
	files := b.Files
	if _, each := g.limits.limits[unix.RLIMIT_NOFILE]; each {
		files = 0
	}
	if err := limit(files); err != nil {
		return nil, -1, err
	}
	for _, fd := range join {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return nil, -1, fmt.Errorf("join the cgroup: %w", err)
		}
		unix.Close(fd)
	}
	g.policy = policy{clone3: g.commands >= 0, pretend: b.Single, counted: &g.garbage, everywhere: len(g.limits.limits) == 0}
	return g, root.upper, confine(g.policy)
}

// connect makes the parts of a guest that need no arguments.
func (g *guest) connect() {
	g.tree.garbage = &g.garbage
	g.table = commandTable{garbage: &g.garbage, running: map[int]*command{}, byRequest: map[int64]*command{}}
	g.garbage.forks = &g.table.mu
	g.forked, g.files = make(chan struct{}, 1), make(chan fileRequest, 64)
}

// takeImage maps the image for the life of the process: all guests share its pages.
func takeImage(fd int) (*Image, error) {
	defer unix.Close(fd)
	content, err := wire.Map(fd)
	if err != nil {
		return nil, fmt.Errorf("map the image: %w", err)
	}
	image, d := &Image{}, wire.NewDecoder(content)
	d.Take(image)
	return image, d.Err()
}

// settler makes the first command's process number independent of how many threads the guest has made. The reaper, which still
// has the right to and nothing else to do, sets the number at the last moment.
type settler struct {
	lastPID int // a descriptor of the last process number; -1 where the kernel has no such file
	ends    [2]int
	done    atomic.Bool
}

func newSettler(lastPID int) (*settler, error) {
	s := &settler{lastPID: lastPID}
	if lastPID < 0 {
		s.done.Store(true)
		return s, nil
	}
	return s, unix.Pipe2(s.ends[:], unix.O_CLOEXEC)
}

// serve waits for ask, and sets the number.
func (s *settler) serve() {
	if s.lastPID < 0 {
		return
	}
	var asked [1]byte
	_, _ = unix.Read(s.ends[0], asked[:])
	_, _ = unix.Write(s.lastPID, strconv.AppendInt(nil, firstCommand-1, 10))
	s.done.Store(true)
	wire.CloseAll([]int{s.ends[0], s.lastPID})
}

// ask is called by the forking thread before each command.
func (s *settler) ask() {
	if s.done.Load() {
		return
	}
	// Neither a channel nor a sleep: either may make the Go runtime start one more thread.
	unix.Close(s.ends[1])
	for !s.done.Load() {
		yield()
	}
}

// yield is a function because the Go runtime can stop the loop above at its entry: the reaper may have to collect garbage
// before it can set the number.
//
//go:noinline
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// startRequest is a request to start a command, for the confined thread.
type startRequest struct {
	id      int64
	command Start
	fds     []int
}

// requestGarbage is about how many bytes of garbage a request makes beside its message and the reply.
const requestGarbage = 4 << 10

// handle handles one request. It starts a command here if this is the confined thread; other requests must not hold that thread
// up.
func (g *guest) handle(message []byte, fds []int) {
	g.garbage.count(len(message) + requestGarbage)
	g.garbage.collect()
	d := wire.NewDecoder(message)
	kind, id := d.Int(), d.Int()
	switch kind {
	case KindStart:
		r := startRequest{id: id, fds: fds}
		d.Take(&r.command)
		if g.starts != nil {
			g.starts <- r
		} else {
			g.start(r.id, &r.command, r.fds)
		}
		return
	case KindKill:
		target, sig := d.Int(), d.Int()
		go g.kill(id, target, unix.Signal(sig))
	case KindKillAll:
		go g.killAll(id)
	case KindCount:
		go g.count(id)
	default:
		g.serveFile(fileRequest{kind: kind, id: id, rest: d, fds: fds})
		return
	}
	wire.CloseAll(fds)
}

// reply answers request id. body appends to the reply after the failure.
func (g *guest) reply(id int64, failure *Failure, body func(*wire.Encoder), fds ...int) {
	var e wire.Encoder
	e.Int(KindReply)
	e.Int(id)
	if failure == nil {
		failure = &Failure{}
	}
	e.Add(failure)
	if body != nil && failure.Code == CodeOK {
		body(&e)
	}
	if err := g.send(e.Bytes, fds...); err != nil && len(fds) > 0 {
		g.reply(id, failed("hand over", "a descriptor", err), nil)
	}
}

// send fails when too many descriptors are in flight.
func (g *guest) send(message []byte, fds ...int) error {
	g.garbage.count(len(message))
	g.sending.Lock()
	defer g.sending.Unlock()
	// Otherwise it fails only when the runner is gone, which the receiving thread notices, too.
	return g.runner.Send(message, fds...)
}
