package guest

import (
	"errors"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/self"
	"trajgen/sandbox/internal/wire"
)

// command is a process that was started for the runner; its number is also its session's.
type command struct {
	id    int64
	pid   int
	began counts
	ended bool
	tree  map[int]bool // descendants seen so far
	mark  uint64       // the mark that descendants inherit; 0 is none
	born  uint64       // in ticks
	alone bool         // no other command was running when it began
}

// commandTable is the commands that have been started.
type commandTable struct {
	garbage *garbage

	mu        sync.Mutex // guards the fields below; held during a fork, so that no child is reaped before it is known
	running   map[int]*command
	byRequest map[int64]*command
	newest    *command
	living    int    // commands that have not ended
	marks     uint64 // how many marks have been given
}

// add requires that the caller holds the lock, as do end and mark.
func (t *commandTable) add(c *command) {
	// The kernel gives out a number again only when nothing is left of the session that had it.
	if old := t.running[c.pid]; old != nil {
		delete(t.byRequest, old.id)
	}
	t.running[c.pid], t.byRequest[c.id] = c, c
	c.alone, t.newest = t.living == 0, c
	t.living++
}

// end returns the command that has ended, or nil when the process was none.
func (t *commandTable) end(pid int) *command {
	c := t.running[pid]
	if c == nil || c.ended {
		return nil
	}
	c.ended = true
	t.living--
	return c
}

// start forks a command. It runs on the confined thread.
func (g *guest) start(id int64, s *Start, fds []int) {
	defer wire.CloseAll(fds)
	c := &command{id: id, began: g.counters.read(), tree: map[int]bool{}}
	failure := g.fork(c, s, fds)
	if failure != nil && failure.Errno == int64(unix.EAGAIN) {
		g.counters.settle(&g.garbage)
		failure = g.fork(c, s, fds)
	}
	if failure != nil {
		g.reply(id, failure, nil)
		return
	}
	select {
	case g.forked <- struct{}{}:
	default:
	}
}

func (g *guest) fork(c *command, s *Start, fds []int) *Failure {
	dir, err := g.tree.open(s.Dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return failed("chdir", s.Dir, err)
	}
	defer unix.Close(dir)
	program, argv, err := findProgram(s, g.helper)
	if err != nil {
		return &Failure{Code: CodeNotFound, Errno: int64(errno(err)), Op: "exec", Path: s.Args[0]}
	}
	attr := &syscall.ProcAttr{
		Dir: "/proc/self/fd/" + strconv.Itoa(dir),
		Env: s.Env,
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	var terminal []int // the runner's end
	if s.FDs&FDTerminal != 0 {
		master, slave, err := OpenTerminal(uint16(s.Rows), uint16(s.Cols))
		if err != nil {
			return failed("open a terminal", "/dev/ptmx", err)
		}
		terminal = []int{master}
		defer wire.CloseAll([]int{master, slave})
		attr.Sys.Setctty, attr.Sys.Ctty = true, 0
		fds = append([]int{slave, slave, slave}, fds...)
		s.FDs |= FDStdin | FDStdout | FDStderr
	}
	attr.Files = standard(g.null, s.FDs, fds)
	if g.commands >= 0 {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, g.commands
	}
	g.table.mu.Lock()
	defer g.table.mu.Unlock()
	g.settler.ask()
	restore := g.limits.lower()
	g.table.mark(c)
	g.forking.Store(true)
	c.pid, err = syscall.ForkExec(program, argv, attr)
	g.forking.Store(false)
	restore()
	if err != nil {
		switch e := errno(err); e {
		case unix.EAGAIN, unix.ENOMEM, unix.E2BIG:
			return failed("start", s.Args[0], e)
		default:
			return &Failure{Code: CodeNotFound, Errno: int64(e), Op: "exec", Path: s.Args[0]}
		}
	}
	if g.bare != nil {
		preferForOOM(c.pid)
	}
	g.limits.bind(c.pid)
	g.table.add(c)
	// Under the lock, so that the runner gets the start before the end.
	g.reply(c.id, nil, func(e *wire.Encoder) { e.Int(int64(c.pid)) }, terminal...)
	return nil
}

// standard arranges descriptors 0, 1, 2 and perhaps 3.
func standard(null int, which int64, fds []int) []uintptr {
	files := []uintptr{uintptr(null), uintptr(null), uintptr(null)}
	next := 0
	take := func() uintptr {
		if next >= len(fds) {
			return uintptr(null)
		}
		next++
		return uintptr(fds[next-1])
	}
	for i, flag := range []int64{FDStdin, FDStdout, FDStderr} {
		if which&flag != 0 {
			files[i] = take()
		}
	}
	if which&FDMerged != 0 {
		files[2] = files[1]
	}
	if which&FDSocket != 0 {
		files = append(files, take())
	}
	return files
}

// findProgram finds the file to execute, as a shell does.
func findProgram(s *Start, helper string) (string, []string, error) {
	if s.Helper {
		return helper, append([]string{self.Helper}, s.Args...), nil
	}
	if len(s.Args) == 0 || s.Args[0] == "" {
		return "", nil, unix.ENOENT
	}
	name := s.Args[0]
	if strings.Contains(name, "/") {
		return name, s.Args, nil
	}
	var search string
	for _, kv := range s.Env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = value
		}
	}
	var found error = unix.ENOENT
	for _, dir := range strings.Split(search, ":") {
		if dir == "" {
			dir = "."
		}
		candidate := path.Join(dir, name)
		if !path.IsAbs(candidate) {
			candidate = path.Join(s.Dir, candidate)
		}
		var st unix.Stat_t
		if err := unix.Stat(candidate, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			if err == unix.ENAMETOOLONG {
				found = err
			}
			continue
		}
		if st.Mode&0o111 == 0 {
			found = unix.EACCES
			continue
		}
		return candidate, s.Args, nil
	}
	return "", nil, found
}

// reap waits for children and never returns. One wait blocks; then it collects all other children that have ended without
// giving up the thread, or a storm of orphans would outrun it. It allocates nothing for each, as no garbage is collected here.
func (g *guest) reap() {
	g.settler.serve()
	var status unix.WaitStatus
	var usage unix.Rusage
	for {
		pid, err := unix.Wait4(-1, &status, unix.WUNTRACED, &usage)
		if err == unix.ECHILD {
			if !g.moreToCome() {
				return
			}
			continue
		}
		for pid > 0 {
			g.reaped(pid, status, &usage)
			pid, _ = unix.Wait4(-1, &status, unix.WNOHANG|unix.WUNTRACED, &usage)
		}
	}
}

// moreToCome waits for a fork; it returns false when there will be none.
func (g *guest) moreToCome() bool {
	if g.bare == nil {
		<-g.forked
		return true
	}
	select {
	case <-g.forked:
		return true
	case <-g.bare.over:
		return false
	}
}

func (g *guest) reaped(pid int, status unix.WaitStatus, usage *unix.Rusage) {
	if status.Stopped() {
		g.stopped(pid)
		return
	}
	g.lockToReap()
	c := g.table.end(pid)
	g.table.mu.Unlock()
	if c == nil {
		return
	}
	x := Exit{Code: int64(status.ExitStatus()), Limits: g.counters.hit(c.began), CPU: usage.Utime.Nano() + usage.Stime.Nano()}
	if status.Signaled() {
		x.Signal = int64(status.Signal())
		x.Code = 128 + x.Signal
	}
	if x.Code == 128+int64(unix.SIGXFSZ) { // a shell reports it like this, too
		x.Limits |= LimitDisk
	}
	if x.Limits&LimitProcesses != 0 {
		// Not here: this thread has to reap processes that end meanwhile.
		go func() {
			g.counters.settle(&g.garbage)
			g.exited(c, &x)
		}()
		return
	}
	g.exited(c, &x)
}

func (g *guest) exited(c *command, x *Exit) {
	var e wire.Encoder
	e.Int(KindExit)
	e.Int(c.id)
	e.Add(x)
	_ = g.send(e.Bytes)
}

// lockToReap waits for the lock. Meanwhile it watches for a stopped child: the lock may be held by the forking thread, which
// waits as long as its child is stopped.
func (g *guest) lockToReap() {
	if g.table.mu.TryLock() {
		return
	}
	var child unix.Siginfo
	pause := unix.Timespec{Nsec: 50_000}
	for !g.table.mu.TryLock() {
		if pid := stoppedChild(&child); pid > 0 {
			g.stopped(pid)
		}
		_ = unix.Nanosleep(&pause, nil)
	}
}

// stoppedChild returns a child that has stopped since the last call, or 0. It leaves ended children alone.
func stoppedChild(info *unix.Siginfo) int {
	const pidAt = 16 // of struct siginfo, where words have 64 bits
	*info = unix.Siginfo{}
	if err := unix.Waitid(unix.P_ALL, 0, info, unix.WSTOPPED|unix.WNOHANG, nil); err != nil {
		return 0
	}
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), pidAt)))
}

// stopped kills a child that was stopped before it became a command: the forking thread waits for it, and the whole guest with
// that. A process of the sandbox can stop others at any time.
func (g *guest) stopped(pid int) {
	if !g.forking.Load() {
		return
	}
	own, ownErr := readlink(unix.AT_FDCWD, "/proc/self/exe")
	its, err := readlink(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/exe")
	// A process without rights may not look at one that still shares our memory.
	if err == unix.EACCES || (ownErr == nil && err == nil && own == its) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func errno(err error) unix.Errno {
	if e, ok := errors.AsType[unix.Errno](err); ok {
		return e
	}
	return unix.EINVAL
}

// failed returns nil without an error.
func failed(op, path string, err error) *Failure {
	if err == nil {
		return nil
	}
	if errors.Is(err, errNotRegular) {
		return &Failure{Code: CodeNotRegular, Op: op, Path: path}
	}
	return &Failure{Code: CodeErrno, Errno: int64(errno(err)), Op: op, Path: path}
}
