package mark

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/guest"
)

// living is a process that is not a zombie.
type living struct {
	pid, parent, session int
	born                 uint64 // in ticks

	look  sync.Once // guards the fields below, which few callers need
	names []string
	limit uint64
}

// marks returns the values of Variable in the process's environment, if we may read it, and the value of the limit.
func (p *living) marks() (names []string, limit uint64) {
	p.look.Do(func() {
		environ, _ := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(Variable+"=")); ok {
				p.names = append(p.names, string(value))
			}
		}
		p.limit = guest.Mark(p.pid)
	})
	return p.names, p.limit
}

// scan reads all processes of the machine that are not known to be older. It can cost more than a command, so callers that come
// while a scan is running share the next one.
type scan struct {
	done chan struct{}
	all  []*living
}

var scans struct {
	one sync.Mutex // held during a scan; guards old
	old map[int]uint64

	mu   sync.Mutex // guards what follows
	next *scan      // not begun yet; nil when no caller waits for one
}

// livingProcesses returns the processes that lived at the call and still do. born is the earliest start that the caller wants:
// unless it is 0, processes older than this one may be missing.
func livingProcesses(born uint64) []*living {
	if born == 0 {
		all, _ := readProcesses(nil, 0)
		return all
	}
	scans.mu.Lock()
	s, first := scans.next, scans.next == nil
	if first {
		s = &scan{done: make(chan struct{})}
		scans.next = s
	}
	scans.mu.Unlock()
	if !first {
		<-s.done
		return s.all
	}
	scans.one.Lock()
	defer scans.one.Unlock()
	scans.mu.Lock()
	scans.next = nil // a caller that comes now may know of processes that this scan misses
	scans.mu.Unlock()
	s.all, scans.old = readProcesses(scans.old, ownBirth())
	close(s.done)
	return s.all
}

var ownBirth = sync.OnceValue(func() uint64 {
	if !clocked() {
		return 0
	}
	return livingProcess(os.Getpid()).born
})

// readProcesses skips processes in old. It returns the others, and a map of all that were born before began: their numbers, and
// the inode numbers of their directories. Either may be used again, but not both by one process.
func readProcesses(old map[int]uint64, began uint64) (young []*living, nowOld map[int]uint64) {
	nowOld = make(map[int]uint64, len(old))
	for _, e := range processEntries() {
		if file, ok := old[e.pid]; ok && file == e.file {
			nowOld[e.pid] = e.file
			continue
		}
		p := livingProcess(e.pid)
		switch {
		case p == nil:
		case p.born < began && e.file > 1: // the kernel reports 1 where it has no inode number
			nowOld[e.pid] = e.file
		default:
			young = append(young, p)
		}
	}
	return young, nowOld
}

type processEntry struct {
	pid  int
	file uint64
}

func processEntries() []processEntry {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var all []processEntry
	var entry unix.Dirent
	const nameAt = int(unsafe.Offsetof(entry.Name))
	for buffer := make([]byte, 16<<10); ; {
		n, err := unix.Getdents(fd, buffer)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return all
		}
		for rest := buffer[:n]; len(rest) > nameAt; {
			length := int(binary.NativeEndian.Uint16(rest[unsafe.Offsetof(entry.Reclen):]))
			if length <= nameAt || length > len(rest) {
				break
			}
			name, _, _ := bytes.Cut(rest[nameAt:length], []byte{0})
			if pid, err := strconv.Atoi(string(name)); err == nil {
				all = append(all, processEntry{pid, binary.NativeEndian.Uint64(rest[unsafe.Offsetof(entry.Ino):])})
			}
			rest = rest[length:]
		}
	}
}

// livingProcess reads a process; nil when it is gone.
func livingProcess(pid int) *living {
	var buffer [1024]byte
	stat := buffer[:readSmall("/proc/"+strconv.Itoa(pid)+"/stat", buffer[:])]
	p := &living{pid: pid}
	field := 0
	// The program's name comes first and may hold anything: parse after its last parenthesis.
	for text := range bytes.FieldsSeq(stat[bytes.LastIndexByte(stat, ')')+1:]) {
		switch field {
		case 0:
			if text[0] == 'Z' {
				return nil
			}
		case 1:
			p.parent, _ = strconv.Atoi(string(text))
		case 3:
			p.session, _ = strconv.Atoi(string(text))
		case 19:
			p.born, _ = strconv.ParseUint(string(text), 10, 64)
			return p
		}
		field++
	}
	return nil
}

// readSmall reads the beginning of a file of /proc in one call, without the poller of os.File.
func readSmall(name string, buffer []byte) (n int) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for err == unix.EINTR {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, err = unix.Read(fd, buffer)
	for err == unix.EINTR {
		n, err = unix.Read(fd, buffer)
	}
	return max(n, 0)
}
