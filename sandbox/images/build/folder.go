package build

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// maxDockerfile bounds a Dockerfile, in bytes.
const maxDockerfile = 1 << 20

// tree is where files are copied from: the directory of the Dockerfile, a stage or an image. Names are absolute.
type tree interface {
	Glob(pattern string) ([]string, error)
	// Walk visits a file and all below it, parents first and sorted.
	Walk(name string, visit func(header *tar.Header, open func() (*os.File, error)) error) error
}

// folder is the directory of a Dockerfile, without what its .dockerignore leaves out. No link leads out of it.
type folder struct {
	root   *os.Root
	ignore *patternmatcher.PatternMatcher
}

// openFolder reads DOCKERFILE.dockerignore, or else .dockerignore.
func openFolder(dir, dockerfile string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root}
	var patterns []string
	for _, name := range []string{dockerfile + ".dockerignore", ".dockerignore"} {
		file, err := f.open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			patterns, err = ignorefile.ReadAll(io.LimitReader(file, maxDockerfile))
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), root.Close())
		}
		break
	}
	if f.ignore, err = patternmatcher.New(patterns); err != nil {
		return nil, errors.Join(fmt.Errorf("read .dockerignore: %w", err), root.Close())
	}
	return f, nil
}

func (f *folder) close() { _ = f.root.Close() }

// open opens a regular file, and waits for no writer of a pipe.
func (f *folder) open(name string) (*os.File, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(cmp.Or(err, fmt.Errorf("%s is not a regular file", name)), file.Close())
	}
	return file, nil
}

func (f *folder) read(name string) ([]byte, error) {
	file, err := f.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, maxDockerfile, name)
}

func (f *folder) ignored(name string) (bool, error) {
	return f.ignore.MatchesOrParentMatches(name)
}

// inside is a name relative to the folder.
func inside(name string) string {
	if name = strings.TrimPrefix(path.Clean("/"+name), "/"); name == "" {
		return "."
	}
	return name
}

// Glob implements tree.
func (f *folder) Glob(pattern string) ([]string, error) {
	matches, err := fs.Glob(f.root.FS(), inside(pattern))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range matches {
		info, err := f.root.Lstat(name)
		if err != nil {
			return nil, err
		}
		ignored, err := f.ignored(name)
		if err != nil {
			return nil, err
		}
		// A pattern may bring back what lies in a directory that is left out.
		if name == "." || !ignored || info.IsDir() && f.ignore.Exclusions() {
			found = append(found, "/"+name)
		}
	}
	return found, nil
}

// Walk implements tree. Everything is root's, as in other builders.
func (f *folder) Walk(name string, visit func(*tar.Header, func() (*os.File, error)) error) error {
	return fs.WalkDir(f.root.FS(), inside(name), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		ignored, err := f.ignored(name)
		if err != nil {
			return err
		}
		if ignored && name != "." {
			if entry.IsDir() && !f.ignore.Exclusions() {
				return fs.SkipDir
			}
			return nil
		}
		header, err := f.header(name)
		if err != nil || header == nil {
			return err
		}
		return visit(header, func() (*os.File, error) { return f.open(name) })
	})
}

// header describes a file. It is nil for what images do not have, such as sockets.
func (f *folder) header(name string) (*tar.Header, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	h := &tar.Header{Name: path.Join("/", name), Mode: modeBits(info.Mode()), ModTime: info.ModTime()}
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		h.Linkname, err = f.root.Readlink(name)
	case 0:
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
	default:
		return nil, nil
	}
	return h, err
}

// modeBits are the bits of a mode as tarballs have them.
func modeBits(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for bit, is := range map[int64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&is != 0 {
			bits |= bit
		}
	}
	return bits
}

// WriteContext writes the directory of a Dockerfile as a tarball for an engine, with the Dockerfile.
func (s Source) WriteContext(to io.Writer) error {
	f, err := openFolder(s.Dir, s.File())
	if err != nil {
		return err
	}
	defer f.close()
	w := tar.NewWriter(to)
	data, err := f.read(s.File())
	if err == nil { // .dockerignore may leave it out
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: s.File(), Mode: 0o644, Size: int64(len(data))})
	}
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = f.Walk("/", func(h *tar.Header, open func() (*os.File, error)) error {
			entry := *h
			if entry.Name = strings.TrimPrefix(h.Name, "/"); entry.Name == "" || entry.Name == s.File() {
				return nil
			}
			if err := w.WriteHeader(&entry); err != nil || h.Typeflag != tar.TypeReg {
				return err
			}
			content, err := open()
			if err != nil {
				return err
			}
			_, err = io.Copy(w, content)
			return errors.Join(err, content.Close())
		})
	}
	return errors.Join(err, w.Close())
}

// digest covers the files of a tree below some names: paths, modes, contents and targets of links, but no times.
func digest(from tree, names []string) (string, error) {
	sum := sha256.New()
	for _, name := range names {
		err := from.Walk(name, func(h *tar.Header, open func() (*os.File, error)) error {
			fmt.Fprintf(sum, "%q %c %o %d %q\n", h.Name, h.Typeflag, h.Mode, h.Size, h.Linkname)
			if h.Typeflag != tar.TypeReg {
				return nil
			}
			file, err := open()
			if err != nil {
				return err
			}
			_, err = io.Copy(sum, file)
			return errors.Join(err, file.Close())
		})
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// readAll reads a stream that is not longer than it may be.
func readAll(from io.Reader, most int64, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", what, most)
	}
	return data, err
}
