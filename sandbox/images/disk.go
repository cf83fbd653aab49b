package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"trajgen/sandbox/internal/state"
)

// tryLock takes the lock of an open file or directory, which is held until the descriptor is closed.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return err == nil, err
}

// lock waits for the lock of a file, which it creates. It polls, because a blocking lock cannot be cancelled.
func lock(ctx context.Context, path string) (*os.File, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		ok, err := tryLock(file)
		// The last holder may have removed the file: another process would then lock another one.
		if ok && sameFile(file, path) {
			return file, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		if ok {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func sameFile(file *os.File, path string) bool {
	a, errA := file.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// disk is the directory of a store.
type disk struct {
	dir    string
	squash bool     // all files belong to this user
	user   *os.File // below users, locked: what this store uses
}

// locked runs do while it holds the store's lock.
func (d *disk) locked(ctx context.Context, do func() error) error {
	held, err := lock(ctx, filepath.Join(d.dir, "lock"))
	if err != nil {
		return err
	}
	err = do()
	return errors.Join(err, held.Close())
}

// openHeld opens a file or directory that its maker keeps locked. dead says that the maker is dead; this process then has the
// lock. A nil file means that it is gone.
func openHeld(path string) (file *os.File, dead bool, err error) {
	file, err = os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if dead, err = tryLock(file); err != nil {
		return nil, false, errors.Join(err, file.Close())
	}
	return file, dead, nil
}

// workplace is a directory in tmp, locked while its maker lives.
type workplace struct {
	path string
	held *os.File
}

func (d *disk) newWorkplace(ctx context.Context) (*workplace, error) {
	w := &workplace{}
	err := d.locked(ctx, func() (err error) {
		if w.path, err = os.MkdirTemp(filepath.Join(d.dir, "tmp"), "work-*"); err != nil {
			return err
		}
		w.held, _, err = openHeld(w.path)
		return err
	})
	return w, err
}

// remove removes what is left in it.
func (w *workplace) remove() error {
	return errors.Join(state.RemoveTree(w.path), w.held.Close())
}

// sweep removes what dead processes left.
func (d *disk) sweep(ctx context.Context, logger *slog.Logger) error {
	for _, sub := range []string{"tmp", "users", "locks"} {
		entries, err := os.ReadDir(filepath.Join(d.dir, sub))
		if err != nil {
			return err
		}
		for _, entry := range entries {
			w := workplace{path: filepath.Join(d.dir, sub, entry.Name())}
			dead := false
			err := d.locked(ctx, func() (err error) {
				w.held, dead, err = openHeld(w.path)
				return err
			})
			switch {
			case err != nil:
				return err
			case dead:
				if err := w.remove(); err != nil {
					return fmt.Errorf("remove what a dead process left: %w", err)
				}
				logger.Info("removed what a dead process left in the image store", "path", w.path)
			case w.held != nil:
				_ = w.held.Close() // it was only checked
			}
		}
	}
	return nil
}

// writeFile replaces a file and syncs it to disk.
func writeFile(path string, data []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
