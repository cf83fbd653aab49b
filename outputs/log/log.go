// Package log is the one append-only file: how frames lie in it, how damage differs from an interrupted write, and how those
// who append share the wait for the disk.
package log

import (
	"errors"
	"fmt"
	"sync"

	"trajgen/outputs/log/disk"
)

// File is a file that grows at its end. It has one writer, who may use it from many goroutines. An error of writing is for
// good: every later call gives it, too.
type File struct {
	file disk.File

	syncing sync.Mutex // held by the one that syncs; those who waited find their bytes on the disk

	mu     sync.Mutex // guards what follows
	size   int64
	synced int64 // bytes that are on the disk
	failed error
}

// New goes on with a file behind its first size bytes. What else is in it is cut off.
func New(file disk.File, size int64) (*File, error) {
	info, err := file.Stat()
	if err == nil && info.Size() > size {
		if err = file.Truncate(size); err == nil {
			err = file.Sync()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cut the end off %s: %w", file.Name(), disk.Explain(file.Name(), err))
	}
	return &File{file: file, size: size}, nil
}

// Append gives pieces to the system, one behind the other, and returns where the first one begins. They outlive the process
// then, and the machine after a Sync. What fails is taken back, so that a reader does not see it.
func (f *File) Append(pieces ...[]byte) (begin int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return 0, f.failed
	}
	end := f.size
	for _, piece := range pieces {
		n, err := f.file.WriteAt(piece, end)
		end += int64(n)
		if err != nil {
			return 0, f.takeBack(f.size, disk.Explain(f.file.Name(), err))
		}
	}
	begin, f.size = f.size, end
	return begin, nil
}

// Sync returns when everything that was appended before is on the disk.
func (f *File) Sync() error {
	mine := f.Size()
	f.syncing.Lock()
	defer f.syncing.Unlock()
	f.mu.Lock()
	all, failed := f.size, f.failed
	if failed != nil || f.synced >= mine {
		f.mu.Unlock()
		return failed
	}
	f.mu.Unlock()
	err := f.file.Sync()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.failed = disk.Explain(f.file.Name(), err)
		return f.failed
	}
	f.synced = all
	return nil
}

// Commit appends pieces and syncs them, for a file that one goroutine uses at a time. What fails is taken back.
func (f *File) Commit(pieces ...[]byte) (begin int64, err error) {
	if begin, err = f.Append(pieces...); err != nil {
		return 0, err
	}
	if err = f.Sync(); err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		return 0, f.takeBack(begin, err)
	}
	return begin, nil
}

// takeBack takes a failed write off the file. The caller holds mu.
func (f *File) takeBack(size int64, cause error) error {
	f.failed = cause
	if err := f.file.Truncate(size); err != nil {
		f.failed = errors.Join(cause, fmt.Errorf("take it back: %w", err))
	} else if err := f.file.Sync(); err != nil {
		// After a failed sync the kernel may have dropped the pages; a second one that succeeds proves nothing about them,
		// only about the truncation.
		f.failed = errors.Join(cause, fmt.Errorf("sync after taking it back: %w", err))
	}
	f.size = size
	return f.failed
}

// Fail makes an error of the writer's one of the file: every later call gives it, unless there was another before.
func (f *File) Fail(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
	return f.failed
}

// Failed is the error that every call gives; nil while there is none.
func (f *File) Failed() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// Size is how many bytes the file has.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// ReadAt makes it an io.ReaderAt.
func (f *File) ReadAt(p []byte, offset int64) (int, error) { return f.file.ReadAt(p, offset) }

// Close closes the file. It syncs nothing.
func (f *File) Close() error {
	_ = f.Fail(errClosed)
	return f.file.Close()
}

var errClosed = errors.New("the file is closed")
