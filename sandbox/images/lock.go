package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// tryLock takes the lock of an open file or directory, which lives as long as the descriptor does.
func tryLock(file *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}

// lock waits for the lock of a file, which it makes. It asks time and again: a wait in the kernel cannot be given up.
func lock(ctx context.Context, path string) (*os.File, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		ok, err := tryLock(file)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		// Whoever had it may have removed the file: then it is not what the next one would lock.
		if ok && sameFile(file, path) {
			return file, nil
		}
		if err := file.Close(); err != nil {
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

// locked does something while nobody else looks at what the store's lock guards.
func (s *Store) locked(ctx context.Context, do func() error) error {
	held, err := lock(ctx, filepath.Join(s.dir, "lock"))
	if err != nil {
		return err
	}
	err = do()
	return errors.Join(err, held.Close())
}

// lockLayer waits until nobody else makes a layer. The returned function lets go.
func (s *Store) lockLayer(ctx context.Context, name string) (func() error, error) {
	path := filepath.Join(s.dir, "locks", name)
	held, err := lock(ctx, path)
	if err != nil {
		return nil, err
	}
	return func() error { return errors.Join(os.Remove(path), held.Close()) }, nil
}

// workplace is a directory in tmp, locked as long as its maker lives.
type workplace struct {
	path string
	held *os.File
}

func (s *Store) newWorkplace(ctx context.Context) (*workplace, error) {
	var w *workplace
	err := s.locked(ctx, func() error {
		path, err := os.MkdirTemp(filepath.Join(s.dir, "tmp"), "work-*")
		if err != nil {
			return err
		}
		held, err := os.Open(path)
		if err != nil {
			return errors.Join(err, os.Remove(path))
		}
		if ok, err := tryLock(held); err != nil || !ok {
			return errors.Join(fmt.Errorf("lock %s: %w", path, err), held.Close(), os.Remove(path))
		}
		w = &workplace{path, held}
		return nil
	})
	return w, err
}

// remove removes all that is left in it.
func (w *workplace) remove() error {
	return errors.Join(removeTree(w.path), w.held.Close())
}

// sweep removes what dead processes left.
func (s *Store) sweep(ctx context.Context) error {
	var dead []*workplace
	defer func() {
		for _, w := range dead {
			_ = w.held.Close()
		}
	}()
	err := s.locked(ctx, func() error {
		for _, sub := range []string{"tmp", "users", "locks"} {
			entries, err := os.ReadDir(filepath.Join(s.dir, sub))
			if err != nil {
				return err
			}
			for _, entry := range entries {
				path := filepath.Join(s.dir, sub, entry.Name())
				held, err := os.Open(path)
				if errors.Is(err, fs.ErrNotExist) {
					continue // its owner was faster
				}
				if err != nil {
					return err
				}
				ok, err := tryLock(held)
				if err == nil && ok {
					dead = append(dead, &workplace{path, held})
					continue
				}
				if err := errors.Join(err, held.Close()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, w := range dead {
		if err := removeTree(w.path); err != nil {
			return fmt.Errorf("remove what a dead process left: %w", err)
		}
		s.opts.Logger.Info("removed what a dead process left in the image store", "path", w.path)
	}
	return nil
}
