package images

import (
	"archive/tar"
	"fmt"
	"math"
	"strings"

	"golang.org/x/sys/unix"
)

// attr is what a file has beside what is in it.
type attr struct {
	mode     uint32 // permissions and set-id bits
	uid, gid int
	times    [2]unix.Timespec
	xattrs   map[string]string
}

// xattrPrefix is how tarballs name extended attributes.
const xattrPrefix = "SCHILY.xattr."

// attrOf takes what a file gets from its entry. When everything belongs to this user, the mode lets it read files, and do in
// directories, what root could anyway.
func attrOf(header *tar.Header, squash bool) (attr, error) {
	a := attr{mode: uint32(header.Mode) & 0o7777, uid: header.Uid, gid: header.Gid}
	mtime, err := unix.TimeToTimespec(header.ModTime)
	if err != nil {
		return attr{}, fmt.Errorf("its time %v: %w", header.ModTime, err)
	}
	a.times = [2]unix.Timespec{mtime, mtime}
	// The largest number means to leave an owner as it is.
	if !squash && (a.uid < 0 || a.gid < 0 || int64(a.uid) >= math.MaxUint32 || int64(a.gid) >= math.MaxUint32) {
		return attr{}, fmt.Errorf("its owner %d:%d cannot be", a.uid, a.gid)
	}
	if squash {
		a.mode |= 0o400
		if header.Typeflag == tar.TypeDir {
			a.mode |= 0o700
		}
	}
	for key, value := range header.PAXRecords {
		name, ok := strings.CutPrefix(key, xattrPrefix)
		if ok && keepsXattr(name, squash) {
			if a.xattrs == nil {
				a.xattrs = map[string]string{}
			}
			a.xattrs[name] = value
		}
	}
	return a, nil
}

// keepsXattr says which attributes files keep: not those that mean something to an overlay.
func keepsXattr(name string, squash bool) bool {
	if name == "security.capability" {
		return !squash
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// set gives an open file its attributes. A change of owner takes away set-id bits and capabilities, and a mode may forbid
// the rest, hence the order.
func (a attr) set(fd int, squash bool) error {
	if !squash {
		if err := unix.Fchown(fd, a.uid, a.gid); err != nil {
			return fmt.Errorf("set the owner %d:%d: %w", a.uid, a.gid, err)
		}
	}
	for name, value := range a.xattrs {
		if err := unix.Fsetxattr(fd, name, []byte(value), 0); err != nil {
			return fmt.Errorf("set the attribute %s of %d bytes: %w", name, len(value), err)
		}
	}
	if err := unix.Fchmod(fd, a.mode); err != nil {
		return fmt.Errorf("set the mode %#o: %w", a.mode, err)
	}
	return setTimes(fd, "", a.times, unix.AT_EMPTY_PATH)
}

// setAt gives attributes to what cannot be opened: a symbolic link or a pipe.
func (a attr) setAt(parent int, base string, isLink, squash bool) error {
	if !squash {
		if err := unix.Fchownat(parent, base, a.uid, a.gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("set the owner %d:%d: %w", a.uid, a.gid, err)
		}
	}
	if !isLink {
		if err := unix.Fchmodat(parent, base, a.mode, 0); err != nil {
			return fmt.Errorf("set the mode %#o: %w", a.mode, err)
		}
	}
	return setTimes(parent, base, a.times, unix.AT_SYMLINK_NOFOLLOW)
}

func setTimes(fd int, name string, times [2]unix.Timespec, flags int) error {
	err := unix.UtimesNanoAt(fd, name, times[:], flags)
	if err != nil {
		return fmt.Errorf("set the time: %w", err)
	}
	return nil
}
