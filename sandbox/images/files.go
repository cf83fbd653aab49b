package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// files are named pieces that an image is put together from.
type files interface {
	open(name string) (io.ReadCloser, int64, error)
	has(name string) bool
	close() error
}

// folder are the files of a directory.
type folder struct{ root *os.Root }

func openFolder(path string) (folder, error) {
	root, err := os.OpenRoot(path)
	return folder{root}, err
}

func (f folder) open(name string) (io.ReadCloser, int64, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", name)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

func (f folder) has(name string) bool {
	_, err := f.root.Stat(name)
	return err == nil
}

func (f folder) close() error { return f.root.Close() }

// maxDocument bounds manifests and configurations.
const maxDocument = 16 << 20

// openFiles opens the pieces of an image: a directory, or a tarball.
func (s *Store) openFiles(ctx context.Context, path string) (files, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openFolder(path)
	}
	w, err := s.newWorkplace(ctx)
	if err != nil {
		return nil, err
	}
	from, err := openArchive(ctx, path, w.path, s.opts.MaxBytes)
	if err := errors.Join(err, w.remove()); err != nil {
		return nil, err
	}
	return from, nil
}

// document reads a small piece. With a digest, it must have it.
func document(from files, name, digest string) ([]byte, error) {
	file, size, err := from.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if size > maxDocument {
		return nil, fmt.Errorf("%s has %d bytes, more than such a document has", name, size)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxDocument))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if have := digestOf(data); digest != "" && have != digest {
		return nil, fmt.Errorf("%s is damaged or forged: its digest is %s, and it should be %s", name, have, digest)
	}
	return data, nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func opener(from files, name string) func(context.Context) (io.ReadCloser, int64, error) {
	return func(context.Context) (io.ReadCloser, int64, error) { return from.open(name) }
}
