package images

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// clean returns a name relative to the root, "" being the root.
func clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errors.New("its name has a NUL in it")
	}
	name = path.Clean(strings.TrimLeft(name, "/"))
	if name == "." {
		return "", nil
	}
	if name == ".." || strings.HasPrefix(name, "../") {
		return "", errors.New("its name leads out of the image")
	}
	return name, nil
}

// parent opens the directory that an entry belongs to, which it makes if need be.
func (u *unpacker) parent(name string) (fd int, base string, err error) {
	dir, base := path.Split(name)
	if u.parentFD >= 0 && dir == u.parentName {
		return u.parentFD, base, nil
	}
	u.forget()
	fd, resolved, err := u.resolve(dir, true)
	if err != nil {
		return -1, "", err
	}
	u.parentName, u.parentPath, u.parentFD = dir, resolved, fd
	return fd, base, nil
}

// forget gives up the last parent, after which nothing is known of links any more.
func (u *unpacker) forget() {
	if u.parentFD >= 0 {
		_ = unix.Close(u.parentFD)
	}
	u.parentFD = -1
}

// openDir opens a directory by its resolved path.
func (u *unpacker) openDir(resolved string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	if resolved == "" {
		resolved = "."
	}
	fd, err := unix.Openat2(u.fd, resolved, &how)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: resolved, Err: err}
	}
	return fd, nil
}

// resolve follows the links in a directory's name, and opens it. What is missing is made, or fails. It goes down step by step: a
// path costs as much as it is deep each time it is looked up.
func (u *unpacker) resolve(dir string, missing bool) (fd int, resolved string, err error) {
	if fd, err = u.openDir(""); err != nil {
		return -1, "", err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
			fd = -1
		}
	}()
	// move takes another directory for the one that was come to.
	move := func(to int, err error) error {
		if err == nil {
			_ = unix.Close(fd)
			fd = to
		}
		return err
	}
	path := make([]byte, 0, len(dir)) // that was come to
	todo := strings.Split(dir, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..": // only links have it
			path = path[:max(bytes.LastIndexByte(path, '/'), 0)]
			if err := move(u.openDir(string(path))); err != nil {
				return fd, "", err
			}
			continue
		}
		above := len(path)
		if above > 0 {
			path = append(path, '/')
		}
		path = append(path, part...)
		fails := func(op string, err error) error { return &os.PathError{Op: op, Path: string(path), Err: err} }
		var st unix.Stat_t
		err := unix.Fstatat(fd, part, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
			if links++; links > 40 {
				return fd, "", unix.ELOOP
			}
			target := make([]byte, unix.PathMax)
			n, err := unix.Readlinkat(fd, part, target)
			if err != nil {
				return fd, "", fails("readlink", err)
			}
			path = path[:above]
			if target[0] == '/' {
				path = path[:0]
				if err := move(u.openDir("")); err != nil {
					return fd, "", err
				}
			}
			todo = append(strings.Split(string(target[:n]), "/"), todo...)
			continue
		case missing && (errors.Is(err, unix.ENOENT) || err == nil && isWhiteout(&st)):
			if err == nil {
				if err := unix.Unlinkat(fd, part, 0); err != nil {
					return fd, "", fails("remove", err)
				}
			}
			if err := u.mkdir(fd, part, string(path), &dirAttr{attr: attr{mode: 0o755}, implied: true, opaque: err == nil}); err != nil {
				return fd, "", err
			}
		case err != nil:
			return fd, "", fails("stat", err)
		default:
			return fd, "", fails("open", unix.ENOTDIR)
		}
		if err := move(unix.Openat(fd, part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)); err != nil {
			return fd, "", fails("open", err)
		}
	}
	return fd, string(path), nil
}

func isWhiteout(st *unix.Stat_t) bool { return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 }

func (u *unpacker) mkdir(at int, name, resolved string, a *dirAttr) error {
	if err := unix.Mkdirat(at, name, 0o700); err != nil {
		return &os.PathError{Op: "mkdir", Path: resolved, Err: err}
	}
	u.dirs[resolved] = a
	if u.named += int64(len(resolved)) + 200; u.named > maxNamed {
		return fmt.Errorf("%w: too many directories", errTooLarge)
	}
	return nil
}
