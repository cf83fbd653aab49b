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
	link     bool   // a symbolic one has no mode
	uid, gid int
	times    [2]unix.Timespec
	xattrs   map[string]string
}

// xattrPrefix is how tarballs name extended attributes.
const xattrPrefix = "SCHILY.xattr."

// attrOf takes what a file gets from its entry. When everything belongs to this user, the mode lets it read files, and do in
// directories, what root could anyway.
func attrOf(header *tar.Header, squash bool) (attr, error) {
	a := attr{mode: uint32(header.Mode) & 0o7777, link: header.Typeflag == tar.TypeSymlink, uid: header.Uid, gid: header.Gid}
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

// set gives attributes to an open file, or by its name in an open directory to what cannot be opened: a symbolic link or a
// pipe. A change of owner takes away set-id bits and capabilities, and a mode may forbid the rest, hence the order.
func (a attr) set(fd int, name string, squash bool) error {
	flags := unix.AT_SYMLINK_NOFOLLOW
	if name == "" {
		flags = unix.AT_EMPTY_PATH
	}
	if !squash {
		if err := unix.Fchownat(fd, name, a.uid, a.gid, flags); err != nil {
			return fmt.Errorf("set the owner %d:%d: %w", a.uid, a.gid, err)
		}
	}
	var err error
	if name == "" {
		for key, value := range a.xattrs {
			if err := unix.Fsetxattr(fd, key, []byte(value), 0); err != nil {
				return fmt.Errorf("set the attribute %s of %d bytes: %w", key, len(value), err)
			}
		}
		err = unix.Fchmod(fd, a.mode)
	} else if !a.link {
		err = unix.Fchmodat(fd, name, a.mode, 0)
	}
	if err != nil {
		return fmt.Errorf("set the mode %#o: %w", a.mode, err)
	}
	if err := unix.UtimesNanoAt(fd, name, a.times[:], flags); err != nil {
		return fmt.Errorf("set the time: %w", err)
	}
	return nil
}
