package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// fromDir takes a directory as an image of one layer. Its name is derived from metadata, without reading the files.
func (r *reader) fromDir(ctx context.Context, ref reference) (*source, error) {
	digest, err := r.walk(ctx, ref.path, func(found) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("look through %s: %w", ref.path, err)
	}
	make := func(ctx context.Context, dir string, b *budget, notify func(done, total int64)) (layer, error) {
		made, copied, err := r.copyTree(ctx, ref.path, dir, &allowance{budget: b}, notify)
		if err == nil && copied != digest {
			err = fmt.Errorf("%s changed while it was copied", ref.path)
		}
		return made, err
	}
	p := part{name: strings.Replace(digest, "sha256:", "dir-", 1), make: make}
	return &source{digest: digest, layers: []part{p}}, nil
}

// found is a file of a directory with its tarball entry. The name of the directory itself is ".".
type found struct {
	tar.Header
	info fs.FileInfo
	stat *syscall.Stat_t
}

// walk visits the files of a directory in order, except mounts below it, the store itself, devices and sockets. The digest
// covers paths, modes, sizes, times, owners and targets of links.
func (r *reader) walk(ctx context.Context, root string, visit func(found) error) (digest string, err error) {
	own, err := os.Stat(r.store)
	if err != nil {
		return "", err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintln(hash, "directory 1")
	var device uint64
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		f := found{info: info, stat: st}
		f.Mode, f.Uid, f.Gid, f.ModTime = int64(st.Mode)&0o7777, int(st.Uid), int(st.Gid), info.ModTime()
		if f.Name, err = filepath.Rel(root, path); err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			f.Typeflag = tar.TypeSymlink
			if f.Linkname, err = os.Readlink(path); err != nil {
				return err
			}
		case fs.ModeDir:
			f.Typeflag = tar.TypeDir
		case fs.ModeNamedPipe:
			f.Typeflag = tar.TypeFifo
		case 0:
			f.Typeflag, f.Size = tar.TypeReg, st.Size
		default:
			return nil
		}
		fmt.Fprintf(hash, "%q %o %d %d %d %d %q\n", f.Name, st.Mode, st.Uid, st.Gid, f.Size, f.ModTime.UnixNano(), f.Linkname)
		if err := visit(f); err != nil {
			return err
		}
		if f.Name == "." {
			device = st.Dev
		}
		if entry.IsDir() && (st.Dev != device || os.SameFile(info, own)) {
			return fs.SkipDir
		}
		return nil
	})
	return fmt.Sprintf("sha256:%x", hash.Sum(nil)), err
}

// copyTree copies a directory and returns the digest of what it copied.
func (r *reader) copyTree(ctx context.Context, from, to string, allowed *allowance, notify func(done, total int64)) (layer, string, error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return layer{}, "", err
	}
	defer root.Close()
	u, err := newUnpacker(to, r.squash, allowed)
	if err != nil {
		return layer{}, "", err
	}
	defer u.close()
	u.literal = true
	first := map[[2]uint64]string{} // the first name of a file with several
	digest, err := r.walk(ctx, from, func(f found) error {
		if f.Typeflag == tar.TypeReg && f.stat.Nlink > 1 {
			inode := [2]uint64{f.stat.Dev, f.stat.Ino}
			if same, ok := first[inode]; ok {
				f.Typeflag, f.Linkname = tar.TypeLink, same
			} else {
				first[inode] = f.Name
			}
		}
		if err := r.copyFile(root, u, f); err != nil {
			return fmt.Errorf("copy %s: %w", filepath.Join(from, f.Name), err)
		}
		notify(allowed.bytes, 0)
		return nil
	})
	if err != nil {
		return layer{}, "", err
	}
	made, err := u.finish()
	made.Bytes = allowed.bytes
	return made, digest, err
}

func (r *reader) copyFile(root *os.Root, u *unpacker, f found) error {
	if f.Typeflag != tar.TypeReg && f.Typeflag != tar.TypeDir {
		return u.add(&f.Header, nil)
	}
	file, err := root.OpenFile(f.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.PAXRecords, err = xattrs(int(file.Fd()), u.buffer, r.squash); err != nil {
		return err
	}
	return u.add(&f.Header, func(to *os.File) error {
		if err := u.allowed.take(f.stat.Blocks*512, 0); err != nil {
			return err
		}
		if err := copyContent(to, file, f.Size); err != nil {
			return err
		}
		now, err := file.Stat()
		if err != nil {
			return err
		}
		if !os.SameFile(now, f.info) || now.Size() != f.Size || !now.ModTime().Equal(f.ModTime) {
			return errors.New("it changed while it was copied")
		}
		return nil
	})
}

// copyContent shares the blocks of a file where the file system can, and otherwise keeps its holes.
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
		if at, err = from.Seek(data, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(to, data), io.NewSectionReader(from, data, at-data)); err != nil {
			return err
		}
	}
	return to.Truncate(size)
}

// xattrs returns the attributes of an open file that a layer keeps, under their names in tarballs. The buffer is twice as large
// as the kernel's limits on names and on a value.
func xattrs(fd int, buffer []byte, squash bool) (map[string]string, error) {
	list, value := buffer[:64<<10], buffer[64<<10:]
	size, err := unix.Flistxattr(fd, list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list attributes: %w", err)
	}
	kept := map[string]string{}
	for name := range strings.SplitSeq(string(list[:size]), "\x00") {
		if !keepsXattr(name, squash) {
			continue
		}
		n, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			return nil, fmt.Errorf("read the attribute %s: %w", name, err)
		}
		kept[xattrPrefix+name] = string(value[:n])
	}
	return kept, nil
}
