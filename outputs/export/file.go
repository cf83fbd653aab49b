package export

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"trajgen/outputs/log/disk"
)

// file is one file that has its name only when it is whole.
type file struct {
	path      string
	disk      *os.File // under its temporary name
	buffer    *bufio.Writer
	whole     FileInfo // of what is complete on disk
	committed bool
}

// openFile begins a file, in a directory that it makes, and locks it against a second export. The example is how a file of this kind is called.
func openFile(path, example string) (*file, error) {
	dir, name := filepath.Split(path)
	if info, err := os.Stat(path); name == "" || err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory (want the name of a file, as in %s)", path, filepath.Join(path, example))
	}
	if dir == "" {
		dir = "."
	}
	if err := disk.MakeDir(filepath.Clean(dir)); err != nil {
		return nil, fmt.Errorf("make directory for export: %w", disk.Explain(dir, err))
	}
	f, err := openTemporary(filepath.Join(dir, "."+name+".tmp"))
	if err != nil {
		return nil, err
	}
	return newFile(f, path), nil
}

func newFile(temporary *os.File, path string) *file {
	return &file{path: path, disk: temporary, buffer: bufio.NewWriterSize(temporary, 1<<16)}
}

// Write makes it an io.Writer. An error is for good.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.buffer.Write(p)
	if err != nil {
		err = fmt.Errorf("write %s: %w", f.path, disk.Explain(f.path, err))
	}
	return n, err
}

// commit makes the file durable and gives it its name.
func (f *file) commit(rows int64) ([]FileInfo, error) {
	err := f.complete(rows)
	if err == nil {
		err = f.takeName()
	}
	if err != nil {
		return nil, err
	}
	if err := disk.Sync(filepath.Dir(f.path)); err != nil {
		return nil, fmt.Errorf("commit export: %w", err)
	}
	return []FileInfo{f.whole}, nil
}

// complete puts on disk what was written.
func (f *file) complete(rows int64) error {
	err := f.buffer.Flush()
	if err == nil {
		err = f.disk.Sync()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, disk.Explain(f.path, err))
	}
	info, err := f.disk.Stat()
	if err != nil {
		return err
	}
	f.whole = FileInfo{Path: f.path, Rows: rows, Bytes: info.Size()}
	return nil
}

func (f *file) takeName() error {
	if err := os.Rename(f.disk.Name(), f.path); err != nil {
		return fmt.Errorf("commit export: %w", disk.Explain(f.path, err))
	}
	f.committed = true
	return nil
}

// close removes what was not committed.
func (f *file) close() error {
	var err error
	if !f.committed {
		if e := os.Remove(f.disk.Name()); !errors.Is(e, fs.ErrNotExist) {
			err = e
		}
	}
	if e := f.disk.Close(); !errors.Is(e, fs.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// openTemporary opens a file for writing anew. It refuses one that another process is writing.
func openTemporary(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("begin export file: %w", disk.Explain(path, err))
	}
	if err := disk.Lock(f); err != nil {
		f.Close()
		if errors.Is(err, disk.ErrLocked) {
			return nil, fmt.Errorf("%w: another export is writing %s", disk.ErrLocked, path)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The other export may have given this very file its final name between our open and our lock.
	mine, err1 := f.Stat()
	named, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(mine, named) {
		f.Close()
		return nil, fmt.Errorf("%w: another export just wrote %s", disk.ErrLocked, path)
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, fmt.Errorf("begin export file: %w", disk.Explain(path, err))
	}
	return f, nil
}
