package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// System is how something that must outlive a crash reaches the disk. Real is the disk; tests have ones that fail.
type System interface {
	Create(path string) (File, error) // new, for reading and writing; wraps fs.ErrExist when there is one
	Open(path string) (File, error)   // for reading and writing
	Rename(from, to string) error     // replaces what is at to
	Remove(path string) error
	Sync(dir string) error // makes the names in a directory durable
}

// File is a file of a System. What it was given is durable when Sync has returned without an error.
type File interface {
	io.ReaderAt
	io.WriterAt
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// Real is the operating system's.
type Real struct{}

// Create makes a file.
func (Real) Create(path string) (File, error) {
	return opened(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666))
}

// Private is Real, for files that their owner alone can read.
type Private struct{ Real }

// Create makes a file.
func (Private) Create(path string) (File, error) {
	return opened(os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

// Open opens a file.
func (Real) Open(path string) (File, error) { return opened(os.OpenFile(path, os.O_RDWR, 0)) }

// opened keeps a nil file from becoming an interface that is not nil.
func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Rename gives a file another name.
func (Real) Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file.
func (Real) Remove(path string) error { return os.Remove(path) }

// Sync syncs a directory.
func (Real) Sync(dir string) error { return Sync(dir) }

// Temporary is what the names of files begin with until they are whole.
const Temporary = ".tmp-"

// Bytes is a content that WriteFile writes.
func Bytes(data []byte) func(File) error {
	return func(f File) error {
		_, err := f.WriteAt(data, 0)
		return err
	}
}

// WriteFile puts a file in place whole: under a temporary name beside it, synced, renamed and durable when it returns.
// Whatever a crash left under the temporary name is replaced. There may be one such writer of a path at a time.
func WriteFile(system System, path string, content func(File) error) error {
	temporary := filepath.Join(filepath.Dir(path), Temporary+filepath.Base(path))
	if err := system.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Explain(temporary, err)
	}
	f, err := system.Create(temporary)
	if err != nil {
		return Explain(temporary, err)
	}
	err = content(f)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = system.Rename(temporary, path)
	}
	if err != nil {
		_ = system.Remove(temporary) // it is replaced the next time, too
		return Explain(path, err)
	}
	return system.Sync(filepath.Dir(path))
}
