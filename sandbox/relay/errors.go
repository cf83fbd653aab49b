package relay

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/wire"
)

// known are the sentinel errors that callers look for, in the order of their bits in a message.
var known = []error{
	sandbox.ErrGone, sandbox.ErrBusy, sandbox.ErrNotRegular, sandbox.ErrNotFound,
	fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid,
}

// maxText bounds the text of an error in a message.
const maxText = 4 << 10

// failure is an error of the server: its text, and what errors.Is and errors.As find in it.
type failure struct {
	text  string
	wraps []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.wraps }

// encodeError appends an error, which may be nil.
func encodeError(e *wire.Encoder, err error) {
	e.Bool(err != nil)
	if err == nil {
		return
	}
	path, isPath := errors.AsType[*fs.PathError](err)
	// Only an unwrapped PathError is decoded as one: the text of a wrapper would be lost.
	bare := isPath && error(path) == err
	e.Bool(isPath)
	e.Bool(bare)
	if isPath {
		e.String(shorten(path.Op))
		e.String(shorten(path.Path))
	}
	cause := err
	if bare {
		cause = path.Err
	}
	var bits int64
	for i, k := range known {
		if errors.Is(cause, k) {
			bits |= 1 << i
		}
	}
	e.Int(bits)
	// The numbers differ between systems, the names do not.
	errno, _ := errors.AsType[syscall.Errno](cause)
	e.Int(int64(errno))
	e.String(unix.ErrnoName(errno))
	e.String(shorten(cause.Error()))
}

func shorten(text string) string {
	return text[:min(len(text), maxText)]
}

// decodeError reads an error.
func decodeError(d *wire.Decoder) error {
	if !d.Bool() || d.Err() != nil {
		return d.Err()
	}
	isPath, bare := d.Bool(), d.Bool()
	var path fs.PathError
	if isPath {
		path.Op, path.Path = d.String(), d.String()
	}
	bits, number, name, text := d.Int(), d.Int(), d.String(), d.String()
	if d.Err() != nil {
		return d.Err()
	}
	var wraps []error
	errno := errnoOf(number, name)
	if errno != 0 {
		wraps = append(wraps, errno)
	}
	for i, k := range known {
		if bits&(1<<i) != 0 {
			wraps = append(wraps, k)
		}
	}
	var cause error = &failure{text: text, wraps: wraps}
	if len(wraps) > 0 && wraps[0].Error() == text {
		cause = wraps[0]
	}
	switch {
	case isPath && bare:
		path.Err = cause
		return &path
	case isPath:
		path.Err = errors.New(text)
		if errno != 0 {
			path.Err = errno
		}
		return &failure{text: text, wraps: append(wraps, &path)}
	}
	return cause
}

// errnoOf returns this system's number of an error, or 0 when it has none.
func errnoOf(number int64, name string) syscall.Errno {
	if name == "" {
		return 0
	}
	if e := syscall.Errno(number); number > 0 && number < 1<<12 && unix.ErrnoName(e) == name {
		return e
	}
	for e := syscall.Errno(1); e < 256; e++ {
		if unix.ErrnoName(e) == name {
			return e
		}
	}
	return 0
}
