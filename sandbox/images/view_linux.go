package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
)

// View reads the files of an image as a sandbox would see them, without opening one. Its names are absolute.
type View struct {
	dirs   []string // of the layers, the uppermost first
	squash bool
	buffer []byte
}

// View returns a view of an image of this store. It is for one goroutine.
func (s *Store) View(image sandbox.Image) *View {
	v := &View{squash: s.disk.squash, buffer: make([]byte, 128<<10)}
	for _, layer := range image.Layers {
		v.dirs = append(v.dirs, filepath.Join(s.disk.dir, layer))
	}
	return v
}

// spot is a file in a view: in a directory's case, in all layers that have a part of it.
type spot struct {
	name string // absolute
	in   []int  // layers, the uppermost first
	info fs.FileInfo
}

// maxLinks is how many links the kernel follows on one path.
const maxLinks = 40

// Resolve follows all links in a name. What does not exist stays as it is. The file is nil then.
func (v *View) Resolve(name string) (string, fs.FileInfo, error) {
	at, err := v.root()
	if err != nil {
		return "", nil, err
	}
	todo := strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		switch next {
		case "", ".":
			continue
		case "..":
			if at, err = v.find(path.Dir(at.name)); err != nil {
				return "", nil, err
			}
			continue
		}
		below, err := v.below(at, next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path.Join(append([]string{at.name, next}, todo...)...), nil, nil
		case err != nil:
			return "", nil, err
		case below.info.Mode().Type() != fs.ModeSymlink:
			at = below
			continue
		}
		if links++; links > maxLinks {
			return "", nil, &fs.PathError{Op: "resolve", Path: name, Err: unix.ELOOP}
		}
		target, err := os.Readlink(v.dirs[below.in[0]] + below.name)
		if err != nil {
			return "", nil, err
		}
		if path.IsAbs(target) {
			if at, err = v.root(); err != nil {
				return "", nil, err
			}
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return at.name, at.info, nil
}

// Lstat describes a file, without following a link at the end or in the middle of its name. It is nil where there is none.
func (v *View) Lstat(name string) (fs.FileInfo, error) {
	at, err := v.find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return at.info, err
}

// ReadFile reads a small file, to which links may lead. It fails with fs.ErrNotExist.
func (v *View) ReadFile(name string, most int64) ([]byte, error) {
	resolved, info, err := v.Resolve(name)
	if err != nil {
		return nil, err
	}
	if info == nil || !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	at, err := v.find(resolved)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(v.dirs[at.in[0]] + at.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return data, err
}

// Glob returns the names that a pattern of package path matches, sorted. It does not follow links, except in what precedes the
// first pattern.
func (v *View) Glob(pattern string) ([]string, error) {
	fixed, rest := "/", strings.Split(strings.Trim(path.Clean(pattern), "/"), "/")
	for len(rest) > 0 && !strings.ContainsAny(rest[0], `*?[\`) {
		fixed, rest = path.Join(fixed, rest[0]), rest[1:]
	}
	from, info, err := v.Resolve(fixed)
	if err != nil || info == nil {
		return nil, err
	}
	found := []string{from}
	for _, want := range rest {
		var next []string
		for _, name := range found {
			at, err := v.find(name)
			if err != nil || !at.info.IsDir() {
				continue
			}
			names, err := v.names(at)
			if err != nil {
				return nil, err
			}
			for _, base := range names {
				is, err := path.Match(want, base)
				if err != nil {
					return nil, err
				}
				if is {
					next = append(next, path.Join(name, base))
				}
			}
		}
		found = next
	}
	return found, nil
}

// Walk visits a file, and all below it if it is a directory, parents first and sorted by name. The header's name is absolute.
// open opens a regular file.
func (v *View) Walk(name string, visit func(header *tar.Header, open func() (*os.File, error)) error) error {
	at, err := v.find(name)
	if err != nil {
		return err
	}
	return v.walk(at, visit)
}

func (v *View) walk(at spot, visit func(*tar.Header, func() (*os.File, error)) error) error {
	file := v.dirs[at.in[0]] + at.name
	header, err := v.header(at, file)
	if err != nil || header == nil {
		return err
	}
	if err := visit(header, func() (*os.File, error) { return os.OpenFile(file, unix.O_RDONLY|unix.O_NOFOLLOW, 0) }); err != nil {
		return err
	}
	if !at.info.IsDir() {
		return nil
	}
	names, err := v.names(at)
	if err != nil {
		return err
	}
	for _, base := range names {
		below, err := v.below(at, base)
		if err != nil {
			return err
		}
		if err := v.walk(below, visit); err != nil {
			return err
		}
	}
	return nil
}

// header describes a file. It is nil for what layers do not keep.
func (v *View) header(at spot, file string) (*tar.Header, error) {
	st := at.info.Sys().(*syscall.Stat_t)
	h := &tar.Header{Name: at.name, Mode: int64(st.Mode & 0o7777), ModTime: at.info.ModTime()}
	if !v.squash {
		h.Uid, h.Gid = int(st.Uid), int(st.Gid)
	}
	switch at.info.Mode().Type() {
	case fs.ModeSymlink:
		var err error
		h.Typeflag = tar.TypeSymlink
		h.Linkname, err = os.Readlink(file)
		return h, err
	case fs.ModeNamedPipe:
		h.Typeflag = tar.TypeFifo
		return h, nil
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
	case 0:
		h.Typeflag, h.Size = tar.TypeReg, at.info.Size()
	default:
		return nil, nil
	}
	open, err := os.OpenFile(file, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	h.PAXRecords, err = xattrs(int(open.Fd()), v.buffer, v.squash)
	return h, err
}

func (v *View) root() (spot, error) {
	at := spot{name: "/"}
	for i := range v.dirs {
		at.in = append(at.in, i)
	}
	if len(v.dirs) == 0 {
		return at, errors.New("it has no layers")
	}
	var err error
	at.info, err = os.Lstat(v.dirs[0])
	return at, err
}

// find finds a file by a name without links.
func (v *View) find(name string) (spot, error) {
	at, err := v.root()
	for _, base := range strings.Split(strings.Trim(name, "/"), "/") {
		if err == nil && base != "" {
			at, err = v.below(at, base)
		}
	}
	return at, err
}

// below finds an entry of a directory. All parents of its path are directories in the layers where it is looked up.
func (v *View) below(dir spot, base string) (spot, error) {
	at := spot{name: path.Join(dir.name, base)}
	missing := &fs.PathError{Op: "find", Path: at.name, Err: fs.ErrNotExist}
	if !dir.info.IsDir() {
		return spot{}, missing
	}
	for _, i := range dir.in {
		info, err := os.Lstat(v.dirs[i] + at.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return spot{}, err
		}
		if !info.IsDir() {
			if at.info == nil && !isWhiteout(info) {
				at.info, at.in = info, []int{i}
			}
			break
		}
		if at.info == nil {
			at.info = info
		}
		at.in = append(at.in, i)
		if opaque(v.dirs[i] + at.name) {
			break
		}
	}
	if at.info == nil {
		return spot{}, missing
	}
	return at, nil
}

func opaque(dir string) bool {
	var value [1]byte
	n, err := unix.Lgetxattr(dir, "user.overlay.opaque", value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

// names lists a directory, sorted.
func (v *View) names(dir spot) ([]string, error) {
	shown := map[string]bool{} // false for what a higher layer hides
	for _, i := range dir.in {
		entries, err := os.ReadDir(v.dirs[i] + dir.name)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if _, known := shown[entry.Name()]; !known {
				shown[entry.Name()] = entry.Type()&fs.ModeCharDevice == 0
			}
		}
	}
	maps.DeleteFunc(shown, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(shown)), nil
}

// Tar writes the files of an image as a tarball of one layer.
func (s *Store) Tar(image sandbox.Image, to io.Writer) error {
	w := tar.NewWriter(to)
	links := map[[2]uint64]string{} // the first name of a file with several
	err := s.View(image).Walk("/", func(h *tar.Header, open func() (*os.File, error)) error {
		h.Format, h.Name = tar.FormatPAX, "."+h.Name
		if h.Typeflag != tar.TypeReg {
			return w.WriteHeader(h)
		}
		file, err := open()
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		if st := info.Sys().(*syscall.Stat_t); st.Nlink > 1 {
			inode := [2]uint64{st.Dev, st.Ino}
			if first, ok := links[inode]; ok {
				h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
				return w.WriteHeader(h)
			}
			links[inode] = h.Name
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(w, file)
		return err
	})
	return errors.Join(err, w.Close())
}
