package search

import (
	"bytes"
	"errors"
	"io"
	"syscall"
)

var (
	errNotRegular = errors.New("not a regular file")
	errBinary     = errors.New("a binary file")
	errLine       = errors.New("a line is too long")
)

// The sizes of what is in memory of a file. A line does not exceed the larger.
const (
	chunkSize = 256 << 10
	maxChunk  = 64 << 20
)

// openRegular opens a file that may have been exchanged since it was listed: a pipe must not block the search.
// Descriptors are used as they are, since the runtime's poller costs a system call for each file.
func openRegular(name string) (int, error) {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil || uint32(stat.Mode)&syscall.S_IFMT != syscall.S_IFREG {
		syscall.Close(fd)
		return -1, errNotRegular
	}
	return fd, nil
}

// descriptor reads.
type descriptor int

func (d descriptor) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(d), p)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, err
		case n <= 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// readSmall reads a file that should be small.
func readSmall(name string, most int64) ([]byte, error) {
	fd, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	return io.ReadAll(io.LimitReader(descriptor(fd), most))
}

// chunks calls visit with one piece of whole lines after the other, until it says that it is enough. A file that holds
// a NUL is binary. The buffer is used again for the next file.
func chunks(name string, buffer *[]byte, visit func(text []byte) bool) error {
	fd, err := openRegular(name)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if *buffer == nil {
		*buffer = make([]byte, chunkSize)
	}
	held := 0
	for {
		b := *buffer
		n, err := descriptor(fd).Read(b[held:])
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if bytes.IndexByte(b[held:held+n], 0) >= 0 {
			return errBinary
		}
		held += n
		if err != nil {
			if held > 0 {
				visit(b[:held])
			}
			return nil
		}
		if held < len(b) {
			continue
		}
		end := bytes.LastIndexByte(b, '\n') + 1
		if end == 0 {
			if 2*len(b) > maxChunk {
				return errLine
			}
			*buffer = append(b, make([]byte, len(b))...)
			continue
		}
		if !visit(b[:end]) {
			return nil
		}
		held = copy(b, b[end:])
	}
}
