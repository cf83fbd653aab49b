package images

import (
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
	resolved, err := u.resolve(dir, true)
	if err != nil {
		return -1, "", err
	}
	if fd, err = u.openDir(resolved); err != nil {
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

// resolve follows the links in a directory's name. What is missing is made, or fails.
func (u *unpacker) resolve(dir string, missing bool) (string, error) {
	todo := strings.Split(dir, "/")
	resolved := ""
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..": // only links have it
			resolved, _ = path.Split(resolved)
			resolved = strings.TrimSuffix(resolved, "/")
			continue
		}
		next := path.Join(resolved, part)
		var st unix.Stat_t
		err := unix.Fstatat(u.fd, next, &st, unix.AT_SYMLINK_NOFOLLOW)
		switch {
		case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
			resolved = next
		case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
			if links++; links > 40 {
				return "", unix.ELOOP
			}
			target, err := u.root.Readlink(next)
			if err != nil {
				return "", err
			}
			if path.IsAbs(target) {
				resolved = ""
			}
			todo = append(strings.Split(target, "/"), todo...)
		case missing && (errors.Is(err, unix.ENOENT) || err == nil && isWhiteout(&st)):
			if err == nil {
				if err := unix.Unlinkat(u.fd, next, 0); err != nil {
					return "", &os.PathError{Op: "remove", Path: next, Err: err}
				}
			}
			if err := u.mkdir(u.fd, next, next, &dirAttr{attr: attr{mode: 0o755}, implied: true, opaque: err == nil}); err != nil {
				return "", err
			}
			resolved = next
		case err != nil:
			return "", &os.PathError{Op: "stat", Path: next, Err: err}
		default:
			return "", &os.PathError{Op: "open", Path: next, Err: unix.ENOTDIR}
		}
	}
	return resolved, nil
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
