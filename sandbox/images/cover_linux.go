package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Layers are shared and know nothing of what lies below them. Two things follow that an image mends with one more layer
// on top, of directories alone, where it has to:
//
// A tarball may have etc/motd and no entry for etc. Its layer then has a directory etc that nobody described, whose owner
// and mode hide those of the etc below. In the top layer it is as it is described below.
//
// Overlay shows white-outs as names without a file in directories that one layer alone has. In the top layer, too, they
// are merged and the white-outs gone.

// described is a directory as a layer has it.
type described struct {
	Name  string
	Mode  uint32
	UID   int
	GID   int
	Mtime int64 // in nanoseconds
}

// stacked are the layers of an image, the uppermost first.
type stacked struct {
	roots   []*os.Root
	implied []map[string]bool
}

// cover returns the layer that belongs on top of others, nil when none is needed.
func (s *Store) cover(names []string, layers []layer) (*part, error) {
	var all stacked
	defer func() {
		for _, root := range all.roots {
			_ = root.Close()
		}
	}()
	for i, name := range names {
		root, err := os.OpenRoot(s.layerDir(name))
		if err != nil {
			return nil, err
		}
		all.roots = append(all.roots, root)
		implied := make(map[string]bool, len(layers[i].Implied))
		for _, dir := range layers[i].Implied {
			implied[dir] = true
		}
		all.implied = append(all.implied, implied)
	}
	wanted := map[string]described{}
	for _, l := range layers {
		for i, name := range slices.Concat(l.Implied, l.Hiding) {
			at, err := all.look(name)
			if err != nil {
				return nil, err
			}
			hiding := i >= len(l.Implied)
			changed := at.described && (at.top.Mode != at.as.Mode || at.top.UID != at.as.UID || at.top.GID != at.as.GID)
			if !changed && (!hiding || at.layers != 1 || name == "") {
				continue
			}
			// The directories on the way to it are in the new layer, too.
			for ; wanted[name].Name == ""; name = parentOf(name) {
				if at, err = all.look(name); err != nil {
					return nil, err
				}
				at.as.Name = "./" + name
				wanted[name] = at.as
			}
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	dirs := make([]described, 0, len(wanted))
	for _, d := range wanted {
		dirs = append(dirs, d)
	}
	slices.SortFunc(dirs, func(a, b described) int { return strings.Compare(a.Name, b.Name) })
	return s.coverPart(dirs)
}

func parentOf(name string) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return ""
}

// seen is a directory as it is in a stack of layers.
type seen struct {
	layers    int       // that have it and are not hidden
	described bool      // by one of them
	top       described // as it is in the uppermost
	as        described // as it should be
}

func (s stacked) look(name string) (seen, error) {
	var at seen
	for i, root := range s.roots {
		d, last, err := lookIn(root, name)
		if err != nil {
			return seen{}, err
		}
		if d != nil {
			if at.layers++; at.layers == 1 {
				at.top, at.as = *d, *d
			}
			if !at.described && !s.implied[i][name] {
				at.described, at.as = true, *d
			}
		}
		if last {
			break
		}
	}
	return at, nil
}

// lookIn looks for a directory in one layer, and says whether it hides what lies below. It goes down step by step: a path costs
// as much as it is deep each time it is looked up.
func lookIn(root *os.Root, name string) (d *described, last bool, err error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	for part := range strings.SplitSeq("./"+name, "/") {
		if part == "" {
			continue
		}
		fd, err := unix.Openat(int(dir.Fd()), part, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			return nil, last, nil
		}
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, &os.PathError{Op: "open", Path: name, Err: err}
		}
		_ = dir.Close()
		dir = os.NewFile(uintptr(fd), name)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return nil, false, &os.PathError{Op: "stat", Path: name, Err: err}
		}
		opaque, err := isOpaque(fd)
		if err != nil {
			return nil, false, &os.PathError{Op: "read the attributes of", Path: name, Err: err}
		}
		last = last || opaque
		d = &described{Mode: st.Mode & 0o7777, UID: int(st.Uid), GID: int(st.Gid), Mtime: st.Mtim.Nano()}
	}
	return d, last, nil
}

func isOpaque(dir int) (bool, error) {
	var value [1]byte
	n, err := unix.Fgetxattr(dir, "user.overlay.opaque", value[:])
	if errors.Is(err, unix.ENODATA) {
		return false, nil
	}
	return err == nil && n == 1 && value[0] == 'y', err
}

func (s *Store) coverPart(dirs []described) (*part, error) {
	data, err := json.Marshal(dirs)
	if err != nil {
		return nil, err
	}
	make := func(_ context.Context, dir string, b *budget, _ func(done, total int64)) (layer, error) {
		u, err := newUnpacker(dir, s.squash, &allowance{budget: b})
		if err != nil {
			return layer{}, err
		}
		defer u.close()
		for _, d := range dirs {
			header := &tar.Header{Typeflag: tar.TypeDir, Name: d.Name, Mode: int64(d.Mode), Uid: d.UID, Gid: d.GID, ModTime: time.Unix(0, d.Mtime)}
			if err := u.add(header, nil); err != nil {
				return layer{}, err
			}
		}
		return u.finish()
	}
	return &part{name: fmt.Sprintf("cover-%x", sha256.Sum256(data)), make: make}, nil
}
