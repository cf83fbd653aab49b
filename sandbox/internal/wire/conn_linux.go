package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inline is the longest message that is sent in the socket itself. A longer one is sent as a memory file, so that sockets need
// no larger buffers and idle connections little memory.
const inline = 32 << 10

// MaxDescriptors is how many descriptors one message can pass: the kernel's limit less one.
const MaxDescriptors = 252

// maxMessage bounds what a peer can make us read into memory.
const maxMessage = 256 << 20

// Conn is one end of a seqpacket socket. Send and Recv may each be called from one goroutine at a time.
type Conn struct {
	fd   int
	file *os.File // nil when calls block their thread
	raw  syscall.RawConn
}

var (
	buffers   = sync.Pool{New: func() any { b := make([]byte, inline+64); return &b }}
	ancillary = sync.Pool{New: func() any { b := make([]byte, unix.CmsgSpace(4*(MaxDescriptors+1))); return &b }}
)

// Pair makes two connected sockets, close-on-exec.
func Pair() (a, b int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("make a socket pair: %w", err)
	}
	return fds[0], fds[1], nil
}

// Polled takes over a socket for use by goroutines: waiting takes no thread, and Close ends a wait.
func Polled(fd int) (*Conn, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "sandbox socket")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &Conn{fd: fd, file: file, raw: raw}, nil
}

// Blocking takes over a socket for use by a dedicated thread, which saves the hand-over between threads.
func Blocking(fd int) *Conn { return &Conn{fd: fd} }

// Close closes the socket.
func (c *Conn) Close() error {
	if c.file != nil {
		return c.file.Close()
	}
	return unix.Close(c.fd)
}

// Send sends a message and copies of the descriptors.
func (c *Conn) Send(message []byte, fds ...int) error {
	head := []byte{0}
	if len(message) > inline {
		file, err := MemoryFile(message)
		if err != nil {
			return fmt.Errorf("send %d bytes: %w", len(message), err)
		}
		defer unix.Close(file)
		head[0], message = 1, nil
		fds = append([]int{file}, fds...)
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	send := func(fd int) error {
		for {
			_, err := unix.SendmsgBuffers(fd, [][]byte{head, message}, oob, nil, unix.MSG_NOSIGNAL)
			if err != unix.EINTR {
				return err
			}
		}
	}
	if c.raw == nil {
		return send(c.fd)
	}
	var err error
	if waitErr := c.raw.Write(func(fd uintptr) bool {
		err = send(int(fd))
		return err != unix.EAGAIN
	}); waitErr != nil {
		return waitErr
	}
	return err
}

// SendContext is Send with a context: when ctx ends first, it has sent nothing and returns the cause. It is for Polled sockets.
func (c *Conn) SendContext(ctx context.Context, message []byte, fds ...int) error {
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = c.file.SetWriteDeadline(time.Unix(1, 0))
	})
	err := c.Send(message, fds...)
	if stop() {
		return err
	}
	<-expired
	_ = c.file.SetWriteDeadline(time.Time{})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// Recv waits for a message. The caller owns the descriptors that came with it. It returns io.EOF when the peer has closed the
// socket.
func (c *Conn) Recv() (message []byte, fds []int, err error) {
	if c.raw == nil {
		return recv(c.fd)
	}
	if waitErr := c.raw.Read(func(fd uintptr) bool {
		message, fds, err = recv(int(fd))
		return err != unix.EAGAIN
	}); waitErr != nil {
		return nil, nil, waitErr
	}
	return message, fds, err
}

func recv(fd int) ([]byte, []int, error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	oob := ancillary.Get().(*[]byte)
	defer ancillary.Put(oob)
	n, oobn, flags, _, err := unix.Recvmsg(fd, *buffer, *oob, unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, oobn, flags, _, err = unix.Recvmsg(fd, *buffer, *oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err == unix.ECONNRESET || (err == nil && n == 0) {
		return nil, nil, io.EOF
	}
	if err != nil {
		return nil, nil, err
	}
	fds := descriptors((*oob)[:oobn])
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(fds) > MaxDescriptors {
		CloseAll(fds)
		return nil, nil, fmt.Errorf("%w: too long", ErrMalformed)
	}
	if (*buffer)[0] == 0 {
		return append([]byte(nil), (*buffer)[1:n]...), fds, nil
	}
	if len(fds) == 0 {
		return nil, nil, fmt.Errorf("%w: no content", ErrMalformed)
	}
	message, err := contents(fds[0])
	unix.Close(fds[0])
	if err != nil {
		CloseAll(fds[1:])
		return nil, nil, err
	}
	return message, fds[1:], nil
}

func descriptors(oob []byte) []int {
	if len(oob) == 0 {
		return nil
	}
	var fds []int
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		if rights, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, rights...)
		}
	}
	return fds
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// MemoryFile returns the descriptor of a memory file that holds content.
func MemoryFile(content []byte) (int, error) { return memoryFile(content, 0) }

// SealedFile is a MemoryFile that cannot be changed, to share between processes that do not trust each other.
func SealedFile(content []byte) (int, error) {
	fd, err := memoryFile(content, unix.MFD_ALLOW_SEALING)
	if err == nil {
		if err = seal(fd); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("make a sealed memory file: %w", err)
	}
	return fd, nil
}

// seal makes a memory file one that cannot be changed. While the kernel itself holds a page of it, as it does at times to
// move or to age pages, it answers EBUSY: the seal is tried again for some seconds.
func seal(fd int) error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
		if err != unix.EBUSY || time.Now().After(end) {
			return err
		}
	}
}

// Map maps a SealedFile into memory, without a copy; the result must not be written to.
func Map(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	return unix.Mmap(fd, 0, int(st.Size), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
}

func memoryFile(content []byte, flags int) (int, error) {
	fd, err := unix.MemfdCreate("message", unix.MFD_CLOEXEC|flags)
	if err != nil {
		return -1, err
	}
	for len(content) > 0 {
		n, err := unix.Write(fd, content)
		if err != nil {
			unix.Close(fd)
			return -1, err
		}
		content = content[n:]
	}
	return fd, nil
}

// contents reads a memory file. It refuses other kinds of file, which could block the reader.
func contents(fd int) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxMessage {
		return nil, fmt.Errorf("%w: not a memory file of at most %d bytes", ErrMalformed, maxMessage)
	}
	content := make([]byte, st.Size)
	for read := 0; read < len(content); {
		n, err := unix.Pread(fd, content[read:], int64(read))
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		read += n
	}
	return content, nil
}
