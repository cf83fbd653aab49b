// Package outputs keeps what a run produced: the journal, and every file that is a pure function of it.
//
// A Journal is the truth: an episode is done when Append has returned. A Reader goes over a journal, beside a live
// writer too, in dataset order. A Sink turns episodes into files of one format, Export feeds sinks from a Reader, and
// a ReportBuilder adds episodes up to a Report.
//
// Nothing here knows the time or the machine: the same journal gives the same bytes wherever and whenever it is
// exported.
package outputs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FileInfo is a file that a sink wrote.
type FileInfo struct {
	Path  string `json:"path"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// syncDir makes the names in a directory durable: a rename or a create is not on disk before that.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		// EINVAL and ENOTSUP: some network file systems have no fsync of directories; their renames are durable.
		return fmt.Errorf("sync directory %s: %w", dir, err)
	}
	return nil
}

// makeDir makes dir with its parents; every directory that was new is durable when it returns.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is a file; want a directory", dir)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// explainWrite says in the error what a person can do about it.
func explainWrite(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("no space left for %s (free some, then go on with --resume): %w", path, err)
	case errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%s reached the largest size that this process may write (see ulimit -f): %w", path, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s cannot be written by this user (want a writable directory): %w", path, err)
	}
	return err
}

// cancelled returns why ctx ended, or nil while it has not.
func cancelled(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
