package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// whiteoutPrefix marks a name that a layer removes from those below.
const whiteoutPrefix = ".wh."

// unpacker makes the files of a layer from the entries of a tarball.
//
// It resolves names, including symbolic links, as a process with the layer as root would, so that no name leads out. Other
// users cannot change the directory, so a resolved name stays valid.
type unpacker struct {
	root    *os.Root
	base    *os.File // that root is
	squash  bool     // everything belongs to this user
	literal bool     // names are literal, as no layer lies below that they could hide
	allowed *allowance
	info    layer
	top     *dir
	named   int64 // approximate size of all dirs in memory
	buffer  []byte

	opened *dir     // the last one opened, as entries of a directory follow each other; nil is none
	file   *os.File // that it is
}

// dir is a directory of the layer. It gets its metadata when it is complete.
type dir struct {
	attr
	path    string // resolved; the root's is "."
	above   *dir   // the root's is the root
	dirs    map[string]*dir
	implied bool // it has no entry
	opaque  bool
	hiding  bool // it has white-outs
}

// maxNamed bounds the memory for directories, in bytes.
const maxNamed = 512 << 20

// unpack makes the files of a layer in an empty directory. The stream is read to the end of the tarball.
func unpack(stream io.Reader, dir string, squash bool, allowed *allowance) (layer, error) {
	u, err := newUnpacker(dir, squash, allowed)
	if err != nil {
		return layer{}, err
	}
	defer u.close()
	reader := tar.NewReader(stream)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return u.finish()
		}
		if err != nil {
			return layer{}, fmt.Errorf("read tarball: %w", err)
		}
		if err := u.add(header, func(to *os.File) error { return u.copy(to, reader, header.Size) }); err != nil {
			return layer{}, fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

func newUnpacker(at string, squash bool, allowed *allowance) (*unpacker, error) {
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, err
	}
	base, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	top := &dir{path: ".", attr: attr{mode: 0o755}, implied: true}
	top.above = top
	return &unpacker{root: root, base: base, squash: squash, allowed: allowed, top: top, buffer: make([]byte, 256<<10)}, nil
}

func (u *unpacker) close() {
	if u.opened != nil {
		_ = u.file.Close()
	}
	_ = u.base.Close()
	_ = u.root.Close()
}

// open opens a directory, relative to its parent if that was the last one: the cost of a path grows with its depth.
func (u *unpacker) open(d *dir) (int, error) {
	if u.opened != d {
		from, name := u.base, d.path
		if u.opened == d.above {
			from, name = u.file, path.Base(name)
		}
		file, err := openDir(from, name)
		if err != nil {
			return -1, err
		}
		if u.opened != nil {
			_ = u.file.Close()
		}
		u.opened, u.file = d, file
	}
	return int(u.file.Fd()), nil
}

// openDir opens a directory below another one, without following links.
func openDir(from *os.File, name string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(int(from.Fd()), name, &how)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// add makes the file of an entry. body fills a regular file.
func (u *unpacker) add(header *tar.Header, body func(*os.File) error) error {
	if err := u.allowed.take(0, 1); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeXGlobalHeader, tar.TypeChar, tar.TypeBlock:
		if !strings.HasPrefix(path.Base(header.Name), whiteoutPrefix) {
			return nil
		}
	case tar.TypeReg, tar.TypeGNUSparse:
		// The tarball does not have the holes of a sparse file.
		if header.Typeflag == tar.TypeGNUSparse || header.PAXRecords["GNU.sparse.major"] != "" || header.PAXRecords["GNU.sparse.map"] != "" {
			if err := u.allowed.take(header.Size, 0); err != nil {
				return err
			}
		}
	}
	u.info.Entries++
	name, err := clean(header.Name)
	if err != nil {
		return err
	}
	a, err := attrOf(header, u.squash)
	if err != nil {
		return err
	}
	if name == "." {
		if header.Typeflag != tar.TypeDir {
			return errors.New("the root is not a directory")
		}
		u.top.attr, u.top.implied = a, false
		return nil
	}
	above, base := path.Split(name)
	parent, err := u.resolve(above, true)
	if err != nil {
		return err
	}
	if hidden, ok := strings.CutPrefix(base, whiteoutPrefix); ok && !u.literal {
		return u.whiteout(parent, hidden)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		if d := parent.dirs[base]; d != nil { // its entries stay
			d.attr, d.implied = a, false
			return nil
		}
		_, err := u.mkdir(parent, base, dir{attr: a})
		return err
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return u.regular(parent, base, a, body)
	case tar.TypeLink:
		return u.link(parent, base, header.Linkname)
	case tar.TypeSymlink:
		if header.Linkname == "" {
			return errors.New("it is a symbolic link to nothing")
		}
		_, err = u.fresh(parent, base, func(at int) error { return unix.Symlinkat(header.Linkname, at, base) })
	case tar.TypeFifo:
		_, err = u.fresh(parent, base, func(at int) error { return unix.Mknodat(at, base, unix.S_IFIFO|0o600, 0) })
	default:
		return fmt.Errorf("it is of the unknown type %q", header.Typeflag)
	}
	if err != nil {
		return err
	}
	return a.set(int(u.file.Fd()), base, u.squash)
}

// clean returns a name relative to the root.
func clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errors.New("its name has a NUL in it")
	}
	name = path.Clean(strings.TrimLeft(name, "/"))
	if name == ".." || strings.HasPrefix(name, "../") {
		return "", errors.New("its name leads out of the image")
	}
	return name, nil
}

// resolve follows the links in a directory's name. A missing directory is made, or is an error.
func (u *unpacker) resolve(name string, missing bool) (*dir, error) {
	at, todo := u.top, strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..": // only links contain it
			at = at.above
			continue
		}
		if d := at.dirs[part]; d != nil {
			at = d
			continue
		}
		fails := func(err error) error { return &os.PathError{Op: "open", Path: path.Join(at.path, part), Err: err} }
		fd, err := u.open(at)
		if err != nil {
			return nil, err
		}
		target := make([]byte, unix.PathMax)
		n, err := unix.Readlinkat(fd, part, target)
		switch {
		case err == nil:
			if links++; links > 40 {
				return nil, fails(unix.ELOOP)
			}
			if target[0] == '/' {
				at = u.top
			}
			todo = append(strings.Split(string(target[:n]), "/"), todo...)
			continue
		case errors.Is(err, unix.EINVAL): // not a link
			if st := (unix.Stat_t{}); unix.Fstatat(fd, part, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
				return nil, fails(unix.ENOTDIR)
			}
		case !errors.Is(err, unix.ENOENT):
			return nil, fails(err)
		}
		if !missing {
			return nil, fails(unix.ENOENT)
		}
		if at, err = u.mkdir(at, part, dir{attr: attr{mode: 0o755}, implied: true}); err != nil {
			return nil, err
		}
	}
	return at, nil
}

// isWhiteout reports whether a file is a white-out: other devices are left out.
func isWhiteout(info fs.FileInfo) bool { return info.Mode()&fs.ModeCharDevice != 0 }

func (u *unpacker) mkdir(parent *dir, base string, d dir) (_ *dir, err error) {
	d.path, d.above = path.Join(parent.path, base), parent
	if u.named += int64(len(d.path)) + 300; u.named > maxNamed {
		return nil, fmt.Errorf("%w: too many directories", errTooLarge)
	}
	if len(d.path) >= unix.PathMax {
		return nil, &os.PathError{Op: "mkdir", Path: d.path, Err: unix.ENAMETOOLONG}
	}
	// A directory that replaced a white-out hides the layers below, too.
	if d.opaque, err = u.fresh(parent, base, func(at int) error { return unix.Mkdirat(at, base, 0o700) }); err != nil {
		return nil, err
	}
	if parent.dirs == nil {
		parent.dirs = map[string]*dir{}
	}
	parent.dirs[base] = &d
	return &d, nil
}

// fresh makes something in place of whatever is there, a directory with all below it included. It reports whether that was a
// white-out.
func (u *unpacker) fresh(parent *dir, base string, mk func(at int) error) (hidden bool, err error) {
	at, err := u.open(parent)
	if err != nil {
		return false, err
	}
	there := path.Join(parent.path, base)
	try := func() error {
		if err := mk(at); err != nil {
			return &os.PathError{Op: "make", Path: there, Err: err}
		}
		return nil
	}
	if err := try(); !errors.Is(err, fs.ErrExist) {
		return false, err
	}
	info, err := u.root.Lstat(there)
	if err == nil {
		err = u.root.RemoveAll(there)
	}
	if err != nil {
		return false, err
	}
	delete(parent.dirs, base)
	return isWhiteout(info), try()
}

func (u *unpacker) regular(parent *dir, base string, a attr, body func(*os.File) error) error {
	var file *os.File
	_, err := u.fresh(parent, base, func(at int) error {
		fd, err := unix.Openat(at, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			file = os.NewFile(uintptr(fd), path.Join(parent.path, base))
		}
		return err
	})
	if err != nil {
		return err
	}
	err = body(file)
	if err == nil {
		err = a.set(int(file.Fd()), "", u.squash)
	}
	return errors.Join(err, file.Close())
}

// link makes a hard link. Its file must be in the same layer.
func (u *unpacker) link(parent *dir, base, target string) error {
	target, err := clean(target)
	if err != nil || target == "." {
		return fmt.Errorf("it is a link to %q, which leads out of the image", target)
	}
	above, from := path.Split(target)
	at, err := u.resolve(above, false)
	var info fs.FileInfo
	if err == nil {
		target = path.Join(at.path, from)
		info, err = u.root.Lstat(target)
	}
	switch {
	case err != nil:
		return fmt.Errorf("it is a link to %s, which the layer does not have: %w", target, err)
	case isWhiteout(info):
		return fmt.Errorf("it is a link to %s, which the layer does not have", target)
	case info.IsDir():
		return fmt.Errorf("it is a link to the directory %s", target)
	}
	name := path.Join(parent.path, base)
	if name == target {
		return nil
	}
	_, err = u.fresh(parent, base, func(int) error { return u.root.Link(target, name) })
	return err
}

// whiteout hides a name of the layers below, or for ".wh..opq" all that they have in the directory. It hides nothing of its own
// layer.
func (u *unpacker) whiteout(parent *dir, hidden string) error {
	switch {
	case hidden == whiteoutPrefix+".opq":
		parent.opaque = true
		return nil
	case strings.HasPrefix(hidden, whiteoutPrefix):
		return nil // metadata of an old union file system
	case hidden == "" || hidden == "." || hidden == "..":
		return errors.New("it hides no name")
	}
	parent.hiding = true
	if d := parent.dirs[hidden]; d != nil {
		d.opaque = true
		return nil
	}
	if _, err := u.root.Lstat(path.Join(parent.path, hidden)); err == nil {
		return nil
	}
	_, err := u.fresh(parent, hidden, func(at int) error { return unix.Mknodat(at, hidden, unix.S_IFCHR, 0) })
	return err
}

// finish sets the metadata of directories and returns the layer's record.
func (u *unpacker) finish() (layer, error) {
	u.info.OpaqueRoot = u.top.opaque
	u.top.opaque = false // overlay has no opaque root: the layers below are left out instead
	err := u.finishDir(u.top)
	slices.Sort(u.info.Implied)
	slices.Sort(u.info.Hiding)
	return u.info, err
}

// finishDir finishes subdirectories first, because a mode may forbid access.
func (u *unpacker) finishDir(d *dir) error {
	for _, below := range d.dirs {
		if err := u.finishDir(below); err != nil {
			return err
		}
	}
	file, err := openDir(u.base, d.path)
	if err != nil {
		return err
	}
	if d.opaque {
		err = unix.Fsetxattr(int(file.Fd()), "user.overlay.opaque", []byte("y"), 0)
	}
	if err == nil {
		err = d.set(int(file.Fd()), "", u.squash)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("finish the directory %s: %w", d.path, err)
	}
	if d.implied {
		u.info.Implied = append(u.info.Implied, d.path)
	}
	if d.hiding {
		u.info.Hiding = append(u.info.Hiding, d.path)
	}
	return nil
}

// copy fills a file and leaves holes for blocks of zeros.
func (u *unpacker) copy(to *os.File, from io.Reader, size int64) error {
	var at int64
	for at < size {
		chunk := u.buffer[:min(int64(len(u.buffer)), size-at)]
		n, err := io.ReadFull(from, chunk)
		if err != nil {
			return err
		}
		if n < 4096 || !bytes.Equal(chunk[:n-1], chunk[1:n]) || chunk[0] != 0 {
			if _, err := to.WriteAt(chunk, at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return to.Truncate(size)
}
