package guest

import (
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links in a row are followed, as in the kernel.
const maxLinks = 40

// write writes a temporary file and renames it to its path.
func (t *fileTree) write(w *Write) error {
	name := w.Path
	if !path.IsAbs(name) {
		name = t.workdir + "/" + name
	}
	if path.Base(name) == ".." || path.Base(name) == "." || name[len(name)-1] == '/' {
		return unix.EISDIR
	}
	if w.Replace {
		dir, err := t.parent(name, true)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		if err := t.removeAll(dir, path.Base(name)); err != nil {
			return err
		}
		return place(dir, path.Base(name), w, uint32(w.Mode), nil)
	}
	return t.overwrite(name, w)
}

// overwrite follows links to the real file, and keeps its mode and owner.
func (t *fileTree) overwrite(name string, w *Write) error {
	for range maxLinks {
		dir, err := t.parent(name, false)
		if err != nil {
			return err
		}
		base := path.Base(name)
		var st unix.Stat_t
		err = unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err == unix.ENOENT:
			err = place(dir, base, w, uint32(w.Mode), nil)
		case err != nil:
		case st.Mode&unix.S_IFMT == unix.S_IFREG:
			err = place(dir, base, w, st.Mode&0o7777, &st)
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			err = unix.EISDIR
		case st.Mode&unix.S_IFMT == unix.S_IFLNK:
			var target, at string
			target, err = readlink(dir, base)
			if err == nil {
				at, err = where(dir)
			}
			if err == nil {
				unix.Close(dir)
				if name = target; !path.IsAbs(target) {
					name = at + "/" + target
				}
				continue
			}
		default:
			err = errNotRegular
		}
		unix.Close(dir)
		return err
	}
	return unix.ELOOP
}

// parent opens the parent directory of name and makes it if missing. With replace, it removes a link or file on the way, which
// the agent may have put there.
func (t *fileTree) parent(name string, replace bool) (int, error) {
	dir := path.Dir(name)
	var resolve uint64
	if replace {
		resolve = unix.RESOLVE_NO_SYMLINKS
	}
	fd, err := t.openDirectory(dir, resolve)
	if err == nil {
		return fd, nil
	}
	planted := replace && (err == unix.ELOOP || err == unix.ENOTDIR)
	if dir == "/" || (err != unix.ENOENT && !planted) {
		return -1, err
	}
	above, err := t.parent(dir, replace)
	if err != nil {
		return -1, err
	}
	defer unix.Close(above)
	base := path.Base(dir)
	if base == "." || base == ".." {
		return t.openWith(dir, unix.O_PATH|unix.O_DIRECTORY, 0, resolve)
	}
	if planted {
		if err := t.removeAll(above, base); err != nil {
			return -1, err
		}
	}
	if err := unix.Mkdirat(above, base, 0o755); err != nil && err != unix.EEXIST {
		return -1, err
	}
	return t.openWith(dir, unix.O_PATH|unix.O_DIRECTORY, 0, resolve)
}

// openDirectory opens a directory to change its entries. It refuses those of /proc.
func (t *fileTree) openDirectory(dir string, resolve uint64) (int, error) {
	fd, err := t.openWith(dir, unix.O_PATH|unix.O_DIRECTORY, 0, resolve)
	if err != nil {
		return -1, err
	}
	var fs unix.Statfs_t
	if err = unix.Fstatfs(fd, &fs); err == nil && fs.Type == unix.PROC_SUPER_MAGIC {
		err = errNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// place writes a temporary file beside its destination and renames it.
func place(dir int, base string, w *Write, mode uint32, like *unix.Stat_t) error {
	var fd int
	var temporary string
	for n := 0; ; n++ {
		temporary = ".new-" + strconv.Itoa(n) + "~"
		var err error
		fd, err = unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			break
		}
		if err != unix.EEXIST || n > 1000 {
			return err
		}
	}
	err := fill(fd, w)
	if err == nil && like != nil {
		// Owners without an id in this sandbox cannot be set.
		_ = unix.Fchown(fd, int(like.Uid), int(like.Gid))
	}
	if err == nil {
		err = unix.Fchmod(fd, mode)
	}
	unix.Close(fd)
	if err == nil {
		err = unix.Renameat(dir, temporary, dir, base)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0)
	}
	return err
}

func fill(fd int, w *Write) error {
	var from int64
	for w.bulk > 0 {
		n, err := unix.Sendfile(fd, w.bulk, &from, 1<<30)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
	}
	data := w.Data
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func where(fd int) (string, error) {
	return readlink(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd))
}

func readlink(dir int, name string) (string, error) {
	var buffer [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, name, buffer[:])
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}
