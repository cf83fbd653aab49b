package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// archive are the files of a tarball, which is read where they lie.
type archive struct {
	file    *os.File
	path    string
	entries map[string]entry
}

type entry struct {
	offset, size int64
	link         string // to another entry
}

// maxArchiveEntries is far above what an image consists of.
const maxArchiveEntries = 100_000

// openArchive looks through a tarball. One that is compressed is unpacked first, as it is read in any order, to a file in
// dir that has no name.
func openArchive(ctx context.Context, path, dir string, max int64) (*archive, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a := &archive{file: file, path: path, entries: map[string]entry{}}
	if err := a.unpack(ctx, dir, max); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), a.close())
	}
	if err := a.index(); err != nil {
		return nil, errors.Join(fmt.Errorf("read the tarball %s: %w", path, err), a.close())
	}
	return a, nil
}

// unpack replaces a compressed file by what is in it.
func (a *archive) unpack(ctx context.Context, dir string, max int64) error {
	stream, compressed, err := decompress(a.file)
	if err != nil || !compressed {
		return err
	}
	defer stream.Close()
	plain, err := os.CreateTemp(dir, "archive-*")
	if err != nil {
		return err
	}
	err = os.Remove(plain.Name())
	if err == nil {
		_, err = io.Copy(plain, &reading{ctx: ctx, from: stream, max: max})
	}
	old := a.file
	a.file = plain
	return errors.Join(err, old.Close())
}

func (a *archive) index() error {
	if _, err := a.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	reader := tar.NewReader(a.file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(a.entries) >= maxArchiveEntries {
			return nil
		}
		at, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		switch header.Typeflag {
		case tar.TypeReg:
			a.entries[name] = entry{offset: at, size: header.Size}
		case tar.TypeSymlink:
			a.entries[name] = entry{link: path.Join(path.Dir(name), header.Linkname)}
		case tar.TypeLink:
			a.entries[name] = entry{link: path.Clean(header.Linkname)}
		}
	}
}

func (a *archive) open(name string) (io.ReadCloser, int64, error) {
	e, ok := a.entries[path.Clean(name)]
	for range 10 {
		if !ok || e.link == "" {
			break
		}
		e, ok = a.entries[e.link]
	}
	if !ok || e.link != "" {
		return nil, 0, &fs.PathError{Op: "open", Path: filepath.Join(a.path, name), Err: fs.ErrNotExist}
	}
	return io.NopCloser(io.NewSectionReader(a.file, e.offset, e.size)), e.size, nil
}

func (a *archive) has(name string) bool {
	_, ok := a.entries[name]
	return ok
}

func (a *archive) close() error { return a.file.Close() }

// imagePattern is how the first part of each name is in an archive of an image.
var imagePattern = regexp.MustCompile(`^(blobs|index\.json|oci-layout|manifest\.json|repositories|(sha256:)?[0-9a-f]{64}.*)$`)

// recogniseArchive says whether a tarball is an image, or else a root file system. It reads no more than it has to.
func recogniseArchive(name string) (kind, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	stream, compressed, err := decompress(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	defer stream.Close()
	var from io.Reader = stream
	if !compressed {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		from = file // which tar skips through
	}
	found := fromTar
	reader := tar.NewReader(from)
	for range maxArchiveEntries {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return "", fmt.Errorf("read the tarball %s: %w; %s", name, err, forms)
		}
		first, _, _ := strings.Cut(path.Clean(header.Name), "/")
		switch {
		case first == ".":
		case first == "oci-layout":
			return fromOCI, nil
		case first == "manifest.json":
			found = fromDocker // unless there is an oci-layout, too: newer versions of docker write both
		case !imagePattern.MatchString(first):
			return fromTar, nil
		}
	}
	return found, nil
}
