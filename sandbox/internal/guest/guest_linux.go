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

// Descriptors that the broker hands to a new guest.
const (
	RunnerFD = 3 + iota
	BrokerFD
)

// firstCommand is the process number of the first command; the guest's threads have those below it.
const firstCommand = 100

// guest is the state of process 1.
type guest struct {
	runner   *wire.Conn // received from by one goroutine alone
	sending  sync.Mutex
	workdir  string
	null     int
	counters Counters
	disk     string // of the file system that is limited
	commands int    // a cgroup to fork into, or -1
	limits   map[int]uint64
	policy   policy
	helper   string // the program of helpers
	tests    string // a mount point that is emptied and not removed; "" is none
	bare     *Bare  // nil in a sandbox with a root of its own
	born     time.Time

	forking   atomic.Bool // a child is not yet a command, perhaps
	mu        sync.Mutex  // guards what follows; held while forking, so that no child is reaped before it is known
	running   map[int]*command
	byRequest map[int64]*command
	newest    *command
	living    int           // commands that have not ended
	marks     uint64        // given so far
	forked    chan struct{} // wakes the reaper

	starts chan startRequest // nil when it is the confined thread that receives
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

// Main runs the guest and does not return. All threads but two keep the full capabilities of the namespaces; they
// only look at /proc, send signals and wait.
func Main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, Name+" is started by the program itself")
		os.Exit(2)
	}
	_ = unix.CloseRange(RunnerFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	unix.Umask(0o022)
	booted := make(chan *guest)
	onOtherThread(func() { serve(booted) })
	// This thread, the first, does meanwhile what must be done before the first command, and ends up as the reaper.
	ignoreSignals()
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(unsafe.StringData(Name+"\x00"))), 0, 0, 0)
	// Threads in store: one that is made between two commands would take a process number from the second.
	for range 2 {
		go func() { _ = unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil) }()
	}
	g := <-booted
	g.reap()
}

// ignoreSignals takes back what the Go runtime installs, but for its own means to stop a goroutine and what is to be
// kept. Without a handler, process 1 gets no signal from its own namespace: neither SIGTERM nor a SIGSEGV that a command
// sends ends it. Package os/signal would do that with two more threads.
//
// A handler that is kept holds back no other signals, as those of the Go runtime do: one that is held back on the first
// thread, and not on the others, ends all of them, as Linux then forgets whom it is for (complete_signal).
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

// onOtherThread runs f on a thread that is not the first of the process. The first thread owns the memory of the
// process as far as cgroups go: were it a member of the commands' group, an OOM kill there could hit the guest.
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

// usualSlack is how late sleeps may end by default, in nanoseconds. The broker lets those of a guest end later.
const usualSlack = 50_000

func serve(booted chan<- *guest) {
	// Commands get it from this thread, which starts them.
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
	// Goroutines wait for messages: a thread that does keeps the Go runtime busy with watching it, for longer than a request takes.
	if g.runner, err = wire.Polled(RunnerFD); err != nil {
		os.Exit(1)
	}
	if broker, err = wire.Polled(BrokerFD); err != nil {
		os.Exit(1)
	}
	g.starts = make(chan startRequest, 16)
	booted <- g
	go func() {
		// The broker says nothing more. Its end closes when it dies, and so must we.
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

// boot makes the sandbox out of what the namespaces give, and puts the calling thread under its rules. upper is a
// descriptor of all that commands will write.
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
		runner: wire.Blocking(RunnerFD), workdir: b.Workdir, counters: NoCounters, disk: "/", commands: -1, limits: standIns(&b), helper: Program, tests: Tests,
		running: map[int]*command{}, byRequest: map[int64]*command{},
		forked: make(chan struct{}, 1), files: make(chan fileRequest, 64),
	}
	g.garbage.forks = &g.mu
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
	if err := g.network(&b); err != nil {
		return nil, -1, err
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return nil, -1, fmt.Errorf("set the host name: %w", err)
	}
	if g.null, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return nil, -1, fmt.Errorf("open /dev/null: %w", err)
	}
	// Should the host run out of memory, a sandbox is the first to go, not the runner.
	_ = tell("/proc/self/oom_score_adj", "300")
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, -1, fmt.Errorf("become non-dumpable: %w", err)
	}
	if g.settler, err = newSettler(root.lastPID); err != nil {
		return nil, -1, err
	}
	files := b.Files
	if _, each := g.limits[unix.RLIMIT_NOFILE]; each {
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
	g.policy = policy{clone3: g.commands >= 0, pretend: b.Single, counted: &g.garbage, everywhere: len(g.limits) == 0}
	return g, root.upper, confine(g.policy)
}

// takeImage keeps the mapping for the life of the process: its pages are shared by all guests.
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

// settler makes the first command's number independent of how many threads the guest happened to need. The number is
// set at the last moment, by a thread that still has the right to: the reaper, which has nothing else to do before.
type settler struct {
	lastPID int // a descriptor; -1 where the kernel has no such file
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

// serve waits to be asked, and sets the number.
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
	// Neither channels nor sleeping: either may make the Go runtime start one more thread.
	unix.Close(s.ends[1])
	for !s.done.Load() {
		yield()
	}
}

// yield is a function of its own because its entry is where the loop above can be stopped: the reaper may need to
// collect garbage before it can set the number.
//
//go:noinline
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// startRequest is a request to start a command, for the confined thread.
type startRequest struct {
	id      int64
	command Start
	fds     []int
}

// requestGarbage is about what a request leaves behind beside its message and the reply.
const requestGarbage = 4 << 10

// handle does one request. A start is done here where this is the confined thread; the rest must not hold it up.
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

// reply answers request id. body is appended after the outcome.
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

// send fails when too many descriptors are on their way.
func (g *guest) send(message []byte, fds ...int) error {
	g.garbage.count(len(message))
	g.sending.Lock()
	defer g.sending.Unlock()
	// Beside that, the only failure is a runner that is gone, which the receiving thread sees too.
	return g.runner.Send(message, fds...)
}
