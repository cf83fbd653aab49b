package guest

import (
	"io"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is how deep removal descends, with a descriptor for each level, before it moves deeper directories up.
const maxDepth = 32

// remove removes a path and all below. It follows links on the way to the path, and no others.
func (t *fileTree) remove(name string) error {
	if name == "" {
		return unix.EINVAL
	}
	if !path.IsAbs(name) {
		name = t.workdir + "/" + name
	}
	for len(name) > 1 && name[len(name)-1] == '/' {
		name = name[:len(name)-1]
	}
	if base := path.Base(name); base == "." || base == ".." || base == "/" {
		meant := name
		if base == "." && len(name) > 1 {
			meant = name[:len(name)-1] // needs no search permission
			for len(meant) > 1 && meant[len(meant)-1] == '/' {
				meant = meant[:len(meant)-1]
			}
		}
		fd, err := t.open(meant, unix.O_PATH|unix.O_DIRECTORY)
		if err == unix.ENOENT {
			return nil
		}
		if err != nil {
			return err
		}
		name, err = where(fd)
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	if name == "/" {
		return unix.EPERM
	}
	dir, err := t.openDirectory(path.Dir(name), 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	base := path.Base(name)
	if t.tests != "" && base == path.Base(t.tests) {
		if at, err := where(dir); err == nil && path.Join(at, base) == t.tests {
			return t.emptyDirectory(t.tests)
		}
	}
	if len(base) > unix.NAME_MAX { // gVisor reports a missing file
		return unix.ENAMETOOLONG
	}
	return t.removeAll(dir, base)
}

// emptyDirectory removes all below a mount point, which stays.
func (t *fileTree) emptyDirectory(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	inside := os.NewFile(uintptr(fd), name)
	defer inside.Close()
	_ = unix.Fchmod(fd, 0o755)
	r := remover{garbage: t.garbage, top: fd}
	for range 1000 {
		if err = r.empty(inside, 0); err != nil {
			return err
		}
		if _, err = inside.Seek(0, 0); err != nil {
			return err
		}
		if _, err = inside.Readdirnames(1); err == io.EOF {
			return nil
		}
		if err == nil {
			err = unix.ENOTEMPTY // something was moved up, or a process goes on making files
		}
	}
	return err
}

// removeAll removes the entry base. It follows no links and stays on the file system.
func (t *fileTree) removeAll(dir int, base string) error {
	r := remover{garbage: t.garbage, top: -1}
	return r.remove(dir, base, 0)
}

// entryGarbage is about how many bytes of garbage it makes to remove a file.
const entryGarbage = 256

type remover struct {
	garbage *garbage
	top     int // the directory that is being removed
	moved   int // how many directories were moved up into it, for their names
}

func (r *remover) remove(dir int, base string, depth int) error {
	err := unix.Unlinkat(dir, base, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if err != unix.EISDIR && err != unix.EPERM {
		return err
	}
	if depth == maxDepth {
		return r.moveUp(dir, base)
	}
	fd, openErr := openInside(dir, base, unix.O_RDONLY)
	if openErr == unix.EACCES {
		// A user without capabilities may lack the permission, but can change the mode of an own directory.
		if fd, openErr = openInside(dir, base, unix.O_PATH); openErr == nil {
			_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o700)
			unix.Close(fd)
			fd, openErr = openInside(dir, base, unix.O_RDONLY)
		}
	}
	switch openErr {
	case nil:
	case unix.EXDEV:
		return unix.EBUSY // a mount point
	case unix.ENOTDIR, unix.ELOOP:
		return err // not a directory, but it may not be removed
	default:
		return openErr
	}
	inside := os.NewFile(uintptr(fd), base)
	defer inside.Close()
	if depth == 0 {
		r.top = fd
	}
	// Again when something was moved up, or a process goes on making files.
	for range 1000 {
		if err := r.empty(inside, depth); err != nil {
			return err
		}
		err = unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.ENOTEMPTY || depth > 0 {
			return err
		}
	}
	return err
}

// openInside opens a directory on the same file system, without following links.
func openInside(dir int, base string, access uint64) (int, error) {
	return unix.Openat2(dir, base, &unix.OpenHow{
		Flags:   access | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	})
}

func (r *remover) moveUp(dir int, base string) error {
	for {
		r.moved++
		err := unix.Renameat2(dir, base, r.top, movedName(r.moved), unix.RENAME_NOREPLACE)
		if err != unix.EEXIST {
			return err
		}
	}
}

func movedName(number int) string { return ".removed-" + strconv.Itoa(number) + "~" }

func (r *remover) empty(inside *os.File, depth int) error {
	if _, err := inside.Seek(0, 0); err != nil {
		return err
	}
	names, err := inside.Readdirnames(-1)
	r.garbage.count(len(names) * entryGarbage)
	r.garbage.collect()
	for _, name := range names {
		if err == nil {
			err = r.remove(int(inside.Fd()), name, depth+1)
		}
		if err == unix.EACCES && unix.Fchmod(int(inside.Fd()), 0o700) == nil {
			err = r.remove(int(inside.Fd()), name, depth+1)
		}
	}
	return err
}
