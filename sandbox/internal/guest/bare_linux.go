package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/self"
	"trajgen/sandbox/internal/wire"
)

// Bare is a guest without a sandbox of its own around it: threads of this process serve the machine or container that it runs
// in. This process must start no other processes.
type Bare struct {
	// Lacks says which rights could not be taken from commands, and why.
	Lacks []string
	// Filtered says that commands run under the system call filter.
	Filtered bool

	shallow bool              // deeply nested directories are removed at the end
	confine func(*Bare) error // of a thread
	begin   chan struct{}     // closed when the forking thread may begin
	over    chan struct{}     // closed when the runner is gone
	ended   chan struct{}     // closed when all that was started has ended
}

// NewBare serves runner, a socket that it takes over, until the runner closes its end. Then it kills all that it has started
// and, with shallow, removes directories that are too deep for what removes the rest. Without network, commands get no
// network sockets, or NewBare fails.
func NewBare(runner int, workdir, tests string, files int64, network, shallow bool) (*Bare, error) {
	// Other threads of this process may need many files.
	if err := limit(0); err != nil {
		return nil, err
	}
	storeThreads()
	g := &guest{
		runner: wire.Blocking(runner), tree: fileTree{workdir: workdir, tests: tests}, helper: "/proc/self/exe", counters: ownCounters(),
		limits: standIns{limits: map[int]uint64{unix.RLIMIT_NOFILE: uint64(files)}},
	}
	b, err := newBare(g, func(b *Bare) error {
		b.Lacks, b.Filtered = confineBare()
		if !network {
			return withoutNetwork()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.shallow = shallow
	b.serve()
	return b, nil
}

// newBare makes a guest with a confined thread, which waits for serve.
func newBare(g *guest, confine func(*Bare) error) (*Bare, error) {
	// Commands do not inherit what this program has inherited.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	unix.Umask(0o022)
	// Orphans become our children, so that all descendants of a command can be found.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become a subreaper: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become non-dumpable: %w", err)
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	if os.Getpid() == 1 {
		ignoreSignals(unix.SIGPIPE)
	} else {
		self.HeedSignals()
	}
	b := &Bare{confine: confine, begin: make(chan struct{}), over: make(chan struct{}), ended: make(chan struct{})}
	g.bare, g.born, g.null, g.commands = b, time.Now(), null, -1
	g.counters.Disk = g.tree.workdir
	g.limits.null, g.limits.shared = null, true
	g.connect()
	if !isMount(g.tree.tests) {
		g.tree.tests = ""
	}
	if g.settler, err = newSettler(-1); err != nil {
		return nil, err
	}
	confined := make(chan error)
	onOtherThread(func() {
		err := confine(b)
		confined <- err
		if err == nil {
			<-b.begin
			g.serveBare()
		}
	})
	if err := <-confined; err != nil {
		return nil, err
	}
	go g.reap()
	return b, nil
}

func (b *Bare) serve() { close(b.begin) }

// Wait waits until the runner has closed the socket and all that was started has ended, or for the time limit.
func (b *Bare) Wait(limit time.Duration) error {
	select {
	case <-b.ended:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("processes do not end in %v", limit)
	}
}

// serveBare runs on the confined thread, which ends with it.
func (g *guest) serveBare() {
	for {
		message, fds, err := g.runner.Recv()
		if err != nil {
			break
		}
		g.handle(message, fds)
	}
	close(g.files)
	go func() {
		g.killEverything()
		if g.bare.shallow {
			shallow(g.born, &g.garbage)
		}
		close(g.bare.over)
		_ = g.runner.Close()
		unix.Close(g.null)
		g.counters.close()
		close(g.bare.ended)
	}()
}

// confineBare takes from the calling thread what it can: the container may not allow all of it.
func confineBare() (lacks []string, filtered bool) {
	lack := func(err error) {
		if err != nil {
			lacks = append(lacks, err.Error())
		}
	}
	// What stays here is not regained by commands either, because of no_new_privs.
	_ = dropBounding()
	lack(dropCapabilities())
	lack(unprivileged())
	lack(guard())
	err := restrict(policy{})
	lack(err)
	return lacks, err == nil
}

// isMount reports whether a file system is mounted at a path.
func isMount(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &st)
	if err == nil && st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 { // gVisor does not say: compare the device
		var above unix.Statx_t
		err = unix.Statx(unix.AT_FDCWD, filepath.Dir(path), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_TYPE, &above)
		return err == nil && (st.Dev_major != above.Dev_major || st.Dev_minor != above.Dev_minor)
	}
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// killDescendants kills the descendants of this process until there are none.
func killDescendants(garbage *garbage) {
	for wait := 50 * time.Microsecond; ; wait = min(2*wait, 5*time.Millisecond) {
		if os.Getpid() == 1 {
			// All at once. Processes that others have put into this container may be out of reach; that must not stop us.
			_ = unix.Kill(-1, unix.SIGKILL)
		}
		stopped := map[int]bool{}
		for grown := true; grown; {
			grown = false
			all := Processes()
			garbage.count(len(all) * processGarbage)
			garbage.collect()
			for pid, p := range descendants(all) {
				if !stopped[pid] {
					stopped[pid], grown = true, true
					if p.State != 'Z' {
						_ = unix.Kill(pid, unix.SIGSTOP)
					}
				}
			}
		}
		if len(stopped) == 0 {
			return
		}
		for pid := range stopped {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(wait)
	}
}

// descendants returns the descendants of this process, zombies included.
func descendants(all map[int]Process) map[int]Process {
	found := map[int]Process{}
	self := os.Getpid()
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if _, ok := found[pid]; ok {
				continue
			}
			if _, ok := found[p.Parent]; ok || p.Parent == self {
				found[pid], grown = p, true
			}
		}
	}
	return found
}
