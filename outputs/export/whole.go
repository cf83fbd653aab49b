package export

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"trajgen/outputs/log/disk"
)

// WholeLines is a file of one JSON value a line that has its name only when it is whole. It is locked against a second
// writer meanwhile, and one goroutine uses it.
type WholeLines[Value any] struct{ lines rowFile[Value] }

// NewWholeLines begins a file.
func NewWholeLines[Value any](path string) (*WholeLines[Value], error) {
	lines, err := openRowFile[Value](path, rowKind{as: "jsonl", name: "lines"}, Options{})
	return &WholeLines[Value]{lines}, err
}

// Add adds a value.
func (w *WholeLines[Value]) Add(value Value) error { return w.lines.put(value) }

// Commit makes the file durable and gives it its name.
func (w *WholeLines[Value]) Commit() (FileInfo, error) {
	files, err := w.lines.finish()
	if err != nil {
		return FileInfo{}, err
	}
	return files[0], nil
}

// Close removes what was not committed.
func (w *WholeLines[Value]) Close() error { return w.lines.close() }

// WholeDir makes a directory that appears when all of it is there: fill fills it under another name beside it, and syncs
// the files that it writes. What is at the path must be empty or not there.
func WholeDir(path string, fill func(dir string) error) (err error) {
	if entries, err := os.ReadDir(path); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty (want the name of a new directory)", path)
	}
	f, err := openFolder(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := os.Remove(filepath.Join(f.temporary, folderMark)); err != nil { // nothing may replace it
		return fmt.Errorf("make %s: %w", path, disk.Explain(path, err))
	}
	if err := fill(f.temporary); err != nil {
		return err
	}
	_, err = f.commit()
	return err
}
