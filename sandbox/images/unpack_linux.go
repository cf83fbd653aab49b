package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// whiteoutPrefix marks a name that a layer takes away from those below.
const whiteoutPrefix = ".wh."

// unpacker makes the files of a layer from the entries of a tarball.
//
// Names are resolved as a process whose root is the layer would resolve them, symbolic links among them, so that nothing
// leads out. Nobody else can change the directory meanwhile, thus what was resolved stays so.
type unpacker struct {
	root    *os.Root
	fd      int  // of root
	squash  bool // everything belongs to this user
	literal bool // names are taken as they are: there is nothing below to take away
	allowed *allowance
	info    layer
	dirs    map[string]*dirAttr // by resolved path; "" is the root
	named   int64               // bytes that dirs and info take, about

	parentName string // that parentFD was opened for, as the tarball writes it
	parentPath string // resolved
	parentFD   int    // -1 is none
	buffer     []byte
}

// dirAttr is what a directory gets when all is in it.
type dirAttr struct {
	attr
	implied bool // no entry is for it
	opaque  bool
	hiding  bool // there were white-outs in it
}

// maxNamed bounds the memory for directories.
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
			break
		}
		if err != nil {
			return layer{}, fmt.Errorf("read tarball: %w", err)
		}
		if err := u.add(header, func(to *os.File) error { return u.copy(to, reader, header.Size) }); err != nil {
			return layer{}, fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
	return u.finish()
}

func newUnpacker(dir string, squash bool, allowed *allowance) (*unpacker, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "open", Path: dir, Err: err}, root.Close())
	}
	implied := &dirAttr{attr: attr{mode: 0o755}, implied: true}
	return &unpacker{
		root: root, fd: fd, squash: squash, allowed: allowed, parentFD: -1,
		dirs: map[string]*dirAttr{"": implied}, buffer: make([]byte, 256<<10),
	}, nil
}

func (u *unpacker) close() {
	u.forget()
	_ = unix.Close(u.fd)
	_ = u.root.Close()
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
		// A sparse file has more than what of it is in the tarball.
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
	if name == "" {
		if header.Typeflag != tar.TypeDir {
			return errors.New("the root is not a directory")
		}
		u.dirs[""].attr, u.dirs[""].implied = a, false
		return nil
	}
	parent, base, err := u.parent(name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(base, whiteoutPrefix) && !u.literal {
		return u.whiteout(parent, strings.TrimPrefix(base, whiteoutPrefix))
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.directory(parent, base, a)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return u.regular(parent, base, a, body)
	case tar.TypeSymlink:
		if header.Linkname == "" {
			return errors.New("it is a symbolic link to nothing")
		}
		err = u.fresh(parent, base, func() error { return unix.Symlinkat(header.Linkname, parent, base) })
	case tar.TypeLink:
		return u.link(name, header.Linkname)
	case tar.TypeFifo:
		err = u.fresh(parent, base, func() error { return unix.Mknodat(parent, base, unix.S_IFIFO|0o600, 0) })
	default:
		return fmt.Errorf("it is of the unknown type %q", header.Typeflag)
	}
	if err != nil {
		return err
	}
	return a.setAt(parent, base, header.Typeflag == tar.TypeSymlink, u.squash)
}

func (u *unpacker) directory(parent int, base string, a attr) error {
	resolved := path.Join(u.parentPath, base)
	var st unix.Stat_t
	err := unix.Fstatat(parent, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		// It was there already: what is in it stays.
		d := u.dirs[resolved]
		d.attr, d.implied = a, false
		return nil
	}
	opaque := err == nil && isWhiteout(&st)
	return u.fresh(parent, base, func() error { return u.mkdir(parent, base, resolved, &dirAttr{attr: a, opaque: opaque}) })
}

func (u *unpacker) regular(parent int, base string, a attr, body func(*os.File) error) error {
	var file *os.File
	err := u.fresh(parent, base, func() error {
		fd, err := unix.Openat(parent, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			file = os.NewFile(uintptr(fd), path.Join(u.parentPath, base))
		}
		return err
	})
	if err != nil {
		return err
	}
	err = body(file)
	if err == nil {
		err = a.set(int(file.Fd()), u.squash)
	}
	return errors.Join(err, file.Close())
}

// fresh makes something where nothing must be: what lies there is removed, a directory with all below.
func (u *unpacker) fresh(parent int, base string, mk func() error) error {
	err := mk()
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if err := u.root.RemoveAll(path.Join(u.parentPath, base)); err != nil {
		return err
	}
	// A link or a directory that names were resolved through may have gone; parent itself has not.
	defer func() { u.parentName = "\x00" }()
	return mk()
}

// link makes a hard link. Its file must be in the same layer.
func (u *unpacker) link(name, target string) error {
	target, err := clean(target)
	if err != nil || target == "" {
		return fmt.Errorf("it is a link to %q, which leads out of the image", target)
	}
	dir, from := path.Split(target)
	at, resolved, err := u.resolve(dir, false)
	if err != nil {
		return fmt.Errorf("it is a link to %s, which the layer does not have: %w", target, err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstatat(at, from, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || isWhiteout(&st) {
		return fmt.Errorf("it is a link to %s, which the layer does not have", target)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Errorf("it is a link to the directory %s", target)
	}
	parent, base, err := u.parent(name)
	if err != nil {
		return err
	}
	if path.Join(u.parentPath, base) == path.Join(resolved, from) {
		return nil
	}
	err = u.fresh(parent, base, func() error { return unix.Linkat(at, from, parent, base, 0) })
	if err != nil {
		return fmt.Errorf("link to %s: %w", target, err)
	}
	return nil
}

// whiteout hides a name of the layers below, or with the rest ".wh..opq" all that they have in the directory. It hides
// nothing of its own layer.
func (u *unpacker) whiteout(parent int, rest string) error {
	if rest == whiteoutPrefix+".opq" {
		u.dirs[u.parentPath].opaque = true
		return nil
	}
	if strings.HasPrefix(rest, whiteoutPrefix) {
		return nil // an old union file system's own
	}
	if rest == "" || rest == "." || rest == ".." {
		return errors.New("it hides no name")
	}
	u.dirs[u.parentPath].hiding = true
	err := unix.Mknodat(parent, rest, unix.S_IFCHR, 0)
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	if d := u.dirs[path.Join(u.parentPath, rest)]; d != nil {
		d.opaque = true // or it is one that was removed since
	}
	return nil
}

// finish gives directories what they need and says what the layer is.
func (u *unpacker) finish() (layer, error) {
	u.forget()
	u.info.OpaqueRoot = u.dirs[""].opaque
	u.dirs[""].opaque = false // overlay knows no opaque root: the layers below are left out instead
	names := make([]string, 0, len(u.dirs))
	for name := range u.dirs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) { // what is below first: a mode may close the way
		d := u.dirs[name]
		fd, err := u.openDir(name)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue // replaced by something else
		}
		if err != nil {
			return layer{}, err
		}
		if d.opaque {
			err = unix.Fsetxattr(fd, "user.overlay.opaque", []byte("y"), 0)
		}
		if err == nil {
			err = d.set(fd, u.squash)
		}
		if err := errors.Join(err, unix.Close(fd)); err != nil {
			return layer{}, fmt.Errorf("finish the directory /%s: %w", name, err)
		}
		if d.implied {
			u.info.Implied = append(u.info.Implied, name)
		}
		if d.hiding {
			u.info.Hiding = append(u.info.Hiding, name)
		}
	}
	slices.Sort(u.info.Implied)
	slices.Sort(u.info.Hiding)
	return u.info, nil
}

// copy fills a file and leaves out what is zero, as far as whole blocks go.
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
