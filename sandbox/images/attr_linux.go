package images

import (
	"archive/tar"
	"fmt"
	"math"
	"strings"

	"golang.org/x/sys/unix"
)

// attr is the metadata of a file.
type attr struct {
	mode     uint32 // permissions and set-id bits
	link     bool   // a symbolic link, which has no mode
	uid, gid int
	times    [2]unix.Timespec
	xattrs   map[string]string
}

// xattrPrefix begins the names of extended attributes in tarballs.
const xattrPrefix = "SCHILY.xattr."

// attrOf returns the metadata of a file from its entry. With squash, when this user owns everything, the mode gives the user
// the rights that root has anyway: to read files, and to change directories.
func attrOf(header *tar.Header, squash bool) (attr, error) {
	a := attr{mode: uint32(header.Mode) & 0o7777, link: header.Typeflag == tar.TypeSymlink, uid: header.Uid, gid: header.Gid}
	mtime, err := unix.TimeToTimespec(header.ModTime)
	if err != nil {
		return attr{}, fmt.Errorf("its time %v: %w", header.ModTime, err)
	}
	a.times = [2]unix.Timespec{mtime, mtime}
	// The largest number means not to change the owner.
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

// keepsXattr reports which attributes are kept: not those that an overlay interprets.
func keepsXattr(name string, squash bool) bool {
	if name == "security.capability" {
		return !squash
	}
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.")
}

// set sets the metadata of an open file, or, by the name in an open directory, of a symbolic link or a pipe. The order matters:
// a change of owner removes set-id bits and capabilities, and a mode may forbid the rest.
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
