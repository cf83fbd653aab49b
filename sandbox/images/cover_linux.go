package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Layers are shared between images and do not depend on the layers below. That has two effects, which an image corrects, where
// needed, with one more layer on top that consists of directories:
//
// A tarball may have etc/motd and no entry for etc. Its layer then has an implied directory etc, whose owner and mode would
// hide those of the etc below. The top layer has the right ones.
//
// In directories that only one layer has, overlay shows white-outs as names without a file. A directory in the top layer makes
// overlay merge them, which removes the white-outs.

// stacked are the layers of an image, the uppermost first.
type stacked struct {
	roots   []*os.File
	implied []map[string]bool
	merged  map[string]*merged // by name
}

// merged is a directory in a stack of layers.
type merged struct {
	in        []int // layers that have it and do not hide it
	described bool  // one of them has an entry for it
	top       tar.Header
	want      tar.Header
}

// cover returns the layer that belongs on top, or nil when none is needed.
func (d *disk) cover(names []string, layers []layer) (*part, error) {
	all := stacked{merged: map[string]*merged{}}
	defer func() {
		for _, root := range all.roots {
			_ = root.Close() // it was only read
		}
	}()
	for i, name := range names {
		root, err := os.Open(d.layerDir(name))
		if err != nil {
			return nil, err
		}
		all.roots = append(all.roots, root)
		implied := map[string]bool{}
		for _, dir := range layers[i].Implied {
			implied[path.Clean(dir)] = true
		}
		all.implied = append(all.implied, implied)
	}
	wanted := map[string]tar.Header{}
	for _, l := range layers {
		for i, name := range slices.Concat(l.Implied, l.Hiding) {
			name = path.Clean(name)
			at, err := all.look(name)
			if err != nil {
				return nil, err
			}
			hiding := i >= len(l.Implied)
			changed := at.described && (at.top.Mode != at.want.Mode || at.top.Uid != at.want.Uid || at.top.Gid != at.want.Gid)
			if !changed && (!hiding || len(at.in) != 1 || name == ".") {
				continue
			}
			// The new layer needs the parent directories, too.
			for ; wanted[name].Name == ""; name = path.Dir(name) {
				if at, err = all.look(name); err != nil {
					return nil, err
				}
				wanted[name] = at.want
			}
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	dirs := slices.SortedFunc(maps.Values(wanted), func(a, b tar.Header) int { return strings.Compare(a.Name, b.Name) })
	data, err := json.Marshal(dirs)
	if err != nil {
		return nil, err
	}
	make := func(_ context.Context, dir string, b *budget, _ func(done, total int64)) (layer, error) {
		u, err := newUnpacker(dir, d.squash, &allowance{budget: b})
		if err != nil {
			return layer{}, err
		}
		defer u.close()
		for _, header := range dirs {
			if err := u.add(&header, nil); err != nil {
				return layer{}, err
			}
		}
		return u.finish()
	}
	return &part{name: fmt.Sprintf("cover-%x", sha256.Sum256(data)), make: make}, nil
}

func (s *stacked) look(name string) (*merged, error) {
	if have := s.merged[name]; have != nil {
		return have, nil
	}
	at := &merged{}
	var in []int
	if name == "." {
		for i := range s.roots {
			in = append(in, i)
		}
	} else {
		above, err := s.look(path.Dir(name))
		if err != nil {
			return nil, err
		}
		in = above.in
	}
	for _, i := range in {
		header, opaque, err := lookIn(s.roots[i], name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			break // a file or a link, which hides the directories below
		}
		if err != nil {
			return nil, err
		}
		if len(at.in) == 0 {
			at.top, at.want = header, header
		}
		if at.in = append(at.in, i); !at.described && !s.implied[i][name] {
			at.described, at.want = true, header
		}
		if opaque {
			break
		}
	}
	s.merged[name] = at
	return at, nil
}

// lookIn describes a directory of one layer, and reports whether it hides the layers below.
func lookIn(layer *os.File, name string) (_ tar.Header, opaque bool, _ error) {
	file, err := openDir(layer, name)
	if err != nil {
		return tar.Header{}, false, err
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return tar.Header{}, false, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	var value [1]byte
	_, err = unix.Fgetxattr(int(file.Fd()), "user.overlay.opaque", value[:])
	if err != nil && !errors.Is(err, unix.ENODATA) {
		return tar.Header{}, false, &os.PathError{Op: "read the attributes of", Path: name, Err: err}
	}
	return tar.Header{
		Typeflag: tar.TypeDir, Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid), ModTime: time.Unix(st.Mtim.Unix()).UTC(),
	}, value[0] == 'y', nil
}
