package relay

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// streams is a byte stream of two files.
type streams struct{ in, out *os.File }

func (s streams) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s streams) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s streams) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }

// standardStreams takes standard input and output away from the rest of this program: commands inherit the null device, and
// stray prints go there.
func standardStreams() (streams, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return streams{}, err
	}
	defer null.Close()
	in, err := take(0, null)
	if err != nil {
		return streams{}, fmt.Errorf("take standard input: %w", err)
	}
	out, err := take(1, null)
	if err != nil {
		return streams{}, fmt.Errorf("take standard output: %w", err)
	}
	return streams{in, out}, nil
}

// take moves a descriptor to one that commands do not inherit, and puts the null device in its place.
func take(fd int, null *os.File) (*os.File, error) {
	syscall.ForkLock.RLock()
	moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	// A blocked read or write of a pollable file returns when the file is closed.
	var st unix.Stat_t
	if err := unix.Fstat(moved, &st); err == nil && (st.Mode&unix.S_IFMT == unix.S_IFIFO || st.Mode&unix.S_IFMT == unix.S_IFSOCK) {
		_ = unix.SetNonblock(moved, true)
	}
	return os.NewFile(uintptr(moved), fmt.Sprintf("stream %d", fd)), replace(fd, null)
}
