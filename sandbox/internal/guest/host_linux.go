package guest

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// HostRoot is the part of a layer of a writable toolchain that holds the root. The n-th of Image.Shared has a part of its own, n.
const HostRoot = "root"

// Shared are the directories of the host that an image shows.
func (m *Image) Shared() []string {
	var dirs []string
	for _, b := range m.Binds {
		if !b.File {
			dirs = append(dirs, b.Path)
		}
	}
	return dirs
}

// mergeHost makes a writable root of the toolchain: an overlay for the root, and one over each directory of the host, which an
// overlay of the root alone would not show. The current directory holds the layers, of which the lowest is the broker's: it has
// every directory of the host that is open to all, as the sandbox's own, because commands may write into no other. Files keep
// their owners, whom the sandbox does not know: what only the host's root may read stays closed. Commands can remove and replace
// the host's files, and cannot change them in place.
func (r *root) mergeHost() error {
	if err := r.merge(HostRoot, "../root"); err != nil {
		return err
	}
	if !r.boot.Fork {
		if err := r.fillHost(); err != nil {
			return err
		}
	}
	pinned := map[string]bool{}
	for i, dir := range r.image.Shared() {
		// What lies above a mount must not be moved: a fork looks for the mount's place.
		var above []string
		for up := path.Dir(dir); up != "/" && !pinned[up]; up = path.Dir(up) {
			pinned[up] = true
			above = append(above, up)
		}
		for _, up := range slices.Backward(above) {
			if err := pin("../root" + up); err != nil {
				return err
			}
		}
		beneath := "host" + strconv.Itoa(i)
		if err := unix.Mkdir(beneath, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: beneath, Err: err}
		}
		if err := unix.Mount(dir, beneath, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", dir, err)
		}
		if err := r.merge(strconv.Itoa(i), "../root"+dir, beneath); err != nil {
			return fmt.Errorf("make %s writable: %w", dir, err)
		}
	}
	return nil
}

// merge mounts an overlay of a part of all layers, with further directories beneath.
func (r *root) merge(part, at string, beneath ...string) error {
	var lower []string
	for i := range r.layers {
		lower = append(lower, strconv.Itoa(i)+"/"+part)
	}
	upper, work := "../upper/"+part, "../work/"+part
	for _, dir := range []string{upper, work} {
		if err := unix.Mkdir(dir, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	return overlay(append(lower, beneath...), upper, work, at)
}

// fillHost makes what the toolchain has beside the host's directories.
func (r *root) fillHost() error {
	if err := unix.Chdir(staging + "/root"); err != nil {
		return err
	}
	if err := r.directories(); err != nil {
		return err
	}
	for _, b := range r.image.Binds {
		if b.Path == Program {
			continue
		}
		if !b.File {
			if err := unix.Mkdir(below(b.Path), 0o755); err != nil && err != unix.EEXIST {
				return &os.PathError{Op: "mkdir", Path: b.Path, Err: err}
			}
			continue
		}
		data, err := os.ReadFile(b.Path)
		if err != nil {
			return err
		}
		if err := put(below(b.Path), data, 0o644); err != nil {
			return err
		}
	}
	if err := r.contents(); err != nil {
		return err
	}
	return unix.Chdir(staging + "/layers")
}
