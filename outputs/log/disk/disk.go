// Package disk writes files so that they are there after a crash, and says what a person can do when that fails.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Sync makes the names in a directory durable: a rename or a create is not on disk before that.
func Sync(dir string) error {
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

// MakeDir makes dir with its parents; every directory that was new is durable when it returns.
func MakeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is a file; want a directory", dir)
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := MakeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return Sync(parent)
}

// Explain says in the error what a person can do about it.
func Explain(path string, err error) error {
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

// ErrLocked is returned when another process holds what this one wants to write.
var ErrLocked = errors.New("locked by another process")

// Lock takes an exclusive lock or returns ErrLocked. The kernel gives it back however the process ends.
func Lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
}

// Make opens a file for reading and writing. When there is none it makes one, whose name is durable.
func Make(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, Explain(path, err)
	}
	if err := Sync(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
