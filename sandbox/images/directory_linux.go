package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// fromDir takes a directory as an image of one layer, named by what can be seen without reading its files: paths, modes,
// sizes, times, owners and where links lead.
func (s *Store) fromDir(ctx context.Context, ref reference) (*source, error) {
	seen := newSurvey()
	if err := s.walk(ctx, ref.path, seen.add); err != nil {
		return nil, fmt.Errorf("look through %s: %w", ref.path, err)
	}
	digest := seen.digest()
	make := func(ctx context.Context, dir string, b *budget, notify func(done, total int64)) (layer, error) {
		return s.copyTree(ctx, ref.path, dir, digest, &allowance{budget: b}, notify)
	}
	p := part{name: "dir-" + strings.TrimPrefix(digest, "sha256:"), make: make}
	return &source{digest: digest, layers: []part{p}}, nil
}

// found is a file of a directory.
type found struct {
	name string // relative, "." is the directory itself
	info fs.FileInfo
	stat *syscall.Stat_t
	link string // where a symbolic link leads
}

// walk visits the files of a directory in order, but for what is mounted below it, the store itself, devices and sockets.
func (s *Store) walk(ctx context.Context, root string, visit func(found) error) error {
	own, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return err
	}
	var device uint64
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := found{}
		if f.info, err = entry.Info(); err != nil {
			return err
		}
		var ok bool
		if f.stat, ok = f.info.Sys().(*syscall.Stat_t); !ok {
			return fmt.Errorf("%s: nothing is known of its owner", path)
		}
		if f.name, err = filepath.Rel(root, path); err != nil {
			return err
		}
		if f.name == "." {
			device = f.stat.Dev
		}
		switch f.info.Mode().Type() {
		case fs.ModeSymlink:
			if f.link, err = os.Readlink(path); err != nil {
				return err
			}
		case fs.ModeDir, fs.ModeNamedPipe, 0:
		default:
			return nil
		}
		if err := visit(f); err != nil {
			return err
		}
		if entry.IsDir() && (f.stat.Dev != device || os.SameFile(f.info, own)) {
			return fs.SkipDir
		}
		return nil
	})
}

// survey is the identity of a directory.
type survey struct{ hash hash.Hash }

func newSurvey() survey {
	hash := sha256.New()
	_, _ = io.WriteString(hash, "directory 1\n")
	return survey{hash}
}

func (s survey) add(f found) error {
	size := int64(0)
	if f.info.Mode().IsRegular() {
		size = f.stat.Size
	}
	_, err := fmt.Fprintf(s.hash, "%q %o %d %d %d %d %q\n", f.name, f.stat.Mode, f.stat.Uid, f.stat.Gid, size, f.info.ModTime().UnixNano(), f.link)
	return err
}

func (s survey) digest() string { return "sha256:" + hex.EncodeToString(s.hash.Sum(nil)) }

// copyTree copies a directory, which must be the one that has a digest.
func (s *Store) copyTree(ctx context.Context, from, to, digest string, allowed *allowance, notify func(done, total int64)) (layer, error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return layer{}, err
	}
	defer root.Close()
	u, err := newUnpacker(to, s.squash, allowed)
	if err != nil {
		return layer{}, err
	}
	defer u.close()
	u.literal = true
	seen := newSurvey()
	first := map[[2]uint64]string{} // of the names of a file with several
	err = s.walk(ctx, from, func(f found) error {
		if err := seen.add(f); err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(f.info, f.link)
		if err != nil {
			return err
		}
		header.Name = f.name
		if inode := [2]uint64{f.stat.Dev, f.stat.Ino}; f.info.Mode().IsRegular() && f.stat.Nlink > 1 {
			if same, ok := first[inode]; ok {
				header.Typeflag, header.Linkname = tar.TypeLink, same
			} else {
				first[inode] = f.name
			}
		}
		if err := s.copyFile(root, u, f, header); err != nil {
			return fmt.Errorf("copy %s: %w", filepath.Join(from, f.name), err)
		}
		notify(allowed.bytes, 0)
		return nil
	})
	if err != nil {
		return layer{}, err
	}
	if seen.digest() != digest {
		return layer{}, fmt.Errorf("%s changed while it was copied", from)
	}
	made, err := u.finish()
	made.Bytes = allowed.bytes
	return made, err
}

func (s *Store) copyFile(root *os.Root, u *unpacker, f found, header *tar.Header) error {
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return u.add(header, nil)
	}
	file, err := root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if header.PAXRecords, err = xattrs(int(file.Fd()), s.squash); err != nil {
		return err
	}
	return u.add(header, func(to *os.File) error {
		if err := u.allowed.take(f.stat.Blocks*512, 0); err != nil {
			return err
		}
		if err := copyContent(to, file, f.stat.Size); err != nil {
			return err
		}
		now, err := file.Stat()
		if err != nil {
			return err
		}
		if !os.SameFile(now, f.info) || now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
			return errors.New("it changed while it was copied")
		}
		return nil
	})
}

// copyContent shares the blocks of a file where the file system can, and keeps its holes where not.
func copyContent(to, from *os.File, size int64) error {
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
		return nil
	}
	for at := int64(0); at < size; {
		data, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // a hole up to the end
		}
		if err != nil {
			return err
		}
		hole, err := from.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if _, err := from.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := to.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, hole-data); err != nil {
			return err
		}
		at = hole
	}
	return to.Truncate(size)
}

// xattrs returns the attributes of an open file that a layer keeps, as tarballs have them.
func xattrs(fd int, squash bool) (map[string]string, error) {
	size, err := unix.Flistxattr(fd, nil)
	if size == 0 || errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list attributes: %w", err)
	}
	list := make([]byte, size+4096)
	if size, err = unix.Flistxattr(fd, list); err != nil {
		return nil, fmt.Errorf("list attributes: %w", err)
	}
	kept := map[string]string{}
	for _, name := range strings.Split(strings.TrimRight(string(list[:size]), "\x00"), "\x00") {
		if !keepsXattr(name, squash) {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			return nil, fmt.Errorf("read the attribute %s: %w", name, err)
		}
		kept[xattrPrefix+name] = string(value[:n])
	}
	return kept, nil
}
