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

// failure is an error of the server as it travels.
type failure struct {
	isPath bool // there is a fs.PathError in it
	bare   bool // it is the error itself; one within others is not decoded as such, as their text would be lost
	op     string
	path   string

	text  string // of what is in a bare one
	known int64  // which of known it is
	errno string // its name: the numbers differ between systems
}

// Fields implements wire.Message.
func (f *failure) Fields(c wire.Coder) {
	c.Bool(&f.isPath, &f.bare)
	c.String(&f.op, &f.path, &f.text, &f.errno)
	c.Int(&f.known)
}

// encodeError appends an error, which may be nil.
func encodeError(e *wire.Encoder, err error) {
	e.Bool(err != nil)
	if err == nil {
		return
	}
	var f failure
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		f.isPath, f.bare, f.op, f.path = true, error(path) == err, shorten(path.Op), shorten(path.Path)
		if f.bare {
			err = path.Err
		}
	}
	for i, k := range known {
		if errors.Is(err, k) {
			f.known |= 1 << i
		}
	}
	errno, _ := errors.AsType[syscall.Errno](err)
	f.text, f.errno = shorten(err.Error()), unix.ErrnoName(errno)
	e.Add(&f)
}

func shorten(text string) string { return text[:min(len(text), maxText)] }

// decodeError reads an error.
func decodeError(d *wire.Decoder) error {
	if !d.Bool() {
		return d.Err()
	}
	var f failure
	if d.Take(&f); d.Err() != nil {
		return d.Err()
	}
	return f.decoded()
}

// decodedError is the text of an error, and what errors.Is and errors.As find in it.
type decodedError struct {
	text  string
	wraps []error
}

func (e *decodedError) Error() string   { return e.text }
func (e *decodedError) Unwrap() []error { return e.wraps }

func (f *failure) decoded() error {
	var wraps []error
	inner := errors.New(f.text)
	if errno := errnoOf(f.errno); errno != 0 {
		inner = errno
		wraps = append(wraps, errno)
	}
	for i, k := range known {
		if f.known&(1<<i) != 0 {
			wraps = append(wraps, k)
		}
	}
	var cause error = &decodedError{f.text, wraps}
	if len(wraps) > 0 && wraps[0].Error() == f.text {
		cause = wraps[0]
	}
	switch {
	case f.isPath && f.bare:
		return &fs.PathError{Op: f.op, Path: f.path, Err: cause}
	case f.isPath:
		return &decodedError{f.text, append(wraps, &fs.PathError{Op: f.op, Path: f.path, Err: inner})}
	}
	return cause
}

// errnoOf returns this system's number of an error, or 0 when it has none.
func errnoOf(name string) syscall.Errno {
	for e := syscall.Errno(1); e < 256 && name != ""; e++ {
		if unix.ErrnoName(e) == name {
			return e
		}
	}
	return 0
}
