package guest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/wire"
)

var errNotRegular = errors.New("not a regular file")

// fileRequest is a request about files, for the file thread.
type fileRequest struct {
	kind, id int64
	rest     *wire.Decoder
	fds      []int
}

var startFiles sync.Once

// serveFile hands a request to the file thread, which has no more rights than commands: whatever they do to names during a
// request, it reaches nothing that they could not. The thread is made when it is first needed: many sandboxes never need it.
func (g *guest) serveFile(r fileRequest) {
	startFiles.Do(func() {
		onOtherThread(func() {
			if g.bare != nil {
				if err := g.bare.confine(&Bare{}); err != nil {
					os.Exit(1)
				}
			} else if err := g.policy.confineFiles(); err != nil {
				os.Exit(1)
			}
			for r := range g.files {
				g.file(r)
			}
		})
	})
	g.files <- r
}

// confineFiles is confine for the file thread, which runs no program.
func (p policy) confineFiles() error {
	if p.everywhere {
		return errors.Join(dropBounding(), dropCapabilities())
	}
	p.counted = nil
	return confine(p)
}

func (g *guest) file(r fileRequest) {
	defer wire.CloseAll(r.fds)
	switch r.kind {
	case KindStat:
		name := r.rest.String()
		info, err := g.tree.stat(name)
		g.reply(r.id, failed("stat", name, err), func(e *wire.Encoder) { e.Add(&info) })
	case KindOpen:
		name := r.rest.String()
		fd, info, err := g.tree.openRegular(name)
		if err != nil {
			g.reply(r.id, failed("open", name, err), nil)
			return
		}
		g.reply(r.id, nil, func(e *wire.Encoder) { e.Add(&info) }, fd)
		unix.Close(fd)
	case KindList:
		name := r.rest.String()
		entries, err := g.tree.list(name)
		g.reply(r.id, failed("list", name, err), func(e *wire.Encoder) { wire.List(e.Coder(), &entries, (*Info).Fields) })
	case KindWrite:
		var w Write
		var err error
		for n := r.rest.Len(); n > 0 && err == nil; n-- {
			if r.rest.Take(&w); r.rest.Err() != nil {
				break
			}
			err = g.tree.write(&w)
		}
		g.reply(r.id, failed("write", w.Path, err), nil)
	case KindWriteBulk:
		var w Write
		r.rest.Take(&w)
		var err error = unix.EBADF
		if len(r.fds) == 1 {
			w.bulk = r.fds[0]
			err = g.tree.write(&w)
		}
		g.reply(r.id, failed("write", w.Path, err), nil)
	case KindRemove:
		var name string
		var err error
		for _, name = range r.rest.Strings() {
			if err = g.tree.remove(name); err != nil {
				break
			}
		}
		g.reply(r.id, failed("remove", name, err), nil)
	default:
		g.reply(r.id, failed("request", "", unix.ENOSYS), nil)
	}
}

// fileTree is the files of a sandbox.
type fileTree struct {
	workdir string
	tests   string // a mount point that remove empties; "" is none
	garbage *garbage
}

// open opens a path as the sandbox sees it. Magic links of /proc are refused: they would lead to the guest's own descriptors.
func (t *fileTree) open(name string, flags uint64) (int, error) {
	return t.openWith(name, flags, 0, 0)
}

func (t *fileTree) openWith(name string, flags, mode, resolve uint64) (int, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return -1, unix.EINVAL
	}
	if !path.IsAbs(name) {
		name = t.workdir + "/" + name
	}
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: mode, Resolve: unix.RESOLVE_NO_MAGICLINKS | resolve}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, name, &how)
		if err == unix.EINTR || err == unix.EAGAIN {
			runtime.Gosched()
			continue
		}
		return fd, err
	}
}

// describe fails for files in /proc, which are about processes, the guest included.
func describe(fd int) (Info, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return Info{}, err
	}
	if system.Type == unix.PROC_SUPER_MAGIC {
		return Info{}, errNotRegular
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Info{}, err
	}
	name, err := where(fd)
	if err != nil {
		return Info{}, err
	}
	return info(name, &st), nil
}

func info(name string, st *unix.Stat_t) Info {
	return Info{Path: name, Size: st.Size, Mode: int64(fileMode(st.Mode)), Seconds: st.Mtim.Sec, Nanoseconds: st.Mtim.Nsec}
}

// fileMode translates the system's mode bits.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		m |= fs.ModeDir
	case unix.S_IFLNK:
		m |= fs.ModeSymlink
	case unix.S_IFIFO:
		m |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		m |= fs.ModeSocket
	case unix.S_IFBLK:
		m |= fs.ModeDevice
	case unix.S_IFCHR:
		m |= fs.ModeDevice | fs.ModeCharDevice
	}
	if mode&unix.S_ISUID != 0 {
		m |= fs.ModeSetuid
	}
	if mode&unix.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	if mode&unix.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	return m
}

func (t *fileTree) stat(name string) (Info, error) {
	fd, err := t.open(name, unix.O_PATH)
	if err != nil {
		return Info{}, err
	}
	defer unix.Close(fd)
	return describe(fd)
}

// openRegular opens a regular file for reading. It never blocks on a pipe, and refuses devices.
func (t *fileTree) openRegular(name string) (int, Info, error) {
	fd, err := t.open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err == unix.ENXIO {
		return -1, Info{}, errNotRegular // a socket
	}
	if err != nil {
		return -1, Info{}, err
	}
	found, err := describe(fd)
	if err == nil {
		switch mode := fs.FileMode(found.Mode); {
		case mode.IsRegular():
			return fd, found, nil
		case mode.IsDir():
			err = unix.EISDIR
		default:
			err = errNotRegular
		}
	}
	unix.Close(fd)
	return -1, Info{}, err
}

// maxListing bounds the paths of a directory's entries, in bytes: the limits of the sandbox do not count the guest's memory,
// and each entry has the whole path.
const maxListing = 64 << 20

func readSome(dir *os.File, path int) (names []string, err error) {
	for size := 0; ; {
		some, err := dir.Readdirnames(1024)
		for _, name := range some {
			size += path + len(name) + 64
		}
		if size > maxListing {
			return nil, unix.EFBIG
		}
		names = append(names, some...)
		if err == io.EOF {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (t *fileTree) list(name string) ([]Info, error) {
	fd, err := t.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	found, err := describe(fd)
	if err != nil {
		return nil, err
	}
	names, err := readSome(dir, len(found.Path))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	entries := make([]Info, 0, len(names))
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			continue // deleted meanwhile
		}
		entries = append(entries, info(path.Join(found.Path, name), &st))
	}
	return entries, nil
}
