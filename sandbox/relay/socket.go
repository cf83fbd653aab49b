package relay

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// socket connects a channel with a stream socket, both ways.
type socket struct {
	conn  *conn
	at    address
	inner net.Conn
	out   *source
	in    *pump

	hungUp atomic.Bool  // the other end of inner is not read any more
	open   atomic.Int32 // directions that have not ended
	ended  func()
}

func newSocket(c *conn, stream uint64, inner net.Conn) *socket {
	at := address{stream, channelSocket}
	s := &socket{conn: c, at: at, inner: inner, out: c.newSource(at)}
	s.open.Store(2)
	s.in = newPump(c, at, inner, func(reset bool) {
		if half, ok := inner.(interface{ CloseWrite() error }); ok && !reset {
			_ = half.CloseWrite()
		}
		if reset {
			s.out.close()
			_ = inner.Close()
		}
		s.step()
	})
	if c.attach(at, s.in) != nil {
		s.in.end(true)
	}
	return s
}

// copy sends what comes out of the socket, until nothing does.
func (s *socket) copy() {
	_ = s.out.copyFrom(s.inner)
	s.out.end(s.hungUp.Load())
	s.out.close()
	s.step()
}

func (s *socket) step() {
	if s.open.Add(-1) == 0 {
		_ = s.inner.Close()
		if s.ended != nil {
			s.ended()
		}
	}
}

// abandon ends both directions at once.
func (s *socket) abandon() {
	s.conn.detach(s.at)
	s.out.close()
	_ = s.inner.Close()
	s.in.end(true)
}

// sockets are those of a sandbox that are open.
type sockets struct {
	mu   sync.Mutex
	open map[*socket]bool
	gone bool
}

// run begins to copy, and ends with the sandbox.
func (all *sockets) run(s *socket) {
	all.mu.Lock()
	gone := all.gone
	if !gone {
		if all.open == nil {
			all.open = map[*socket]bool{}
		}
		all.open[s] = true
		s.ended = func() {
			all.mu.Lock()
			defer all.mu.Unlock()
			delete(all.open, s)
		}
	}
	all.mu.Unlock()
	if gone {
		s.abandon()
	}
	go s.copy()
}

func (all *sockets) abandon() {
	all.mu.Lock()
	open := all.open
	all.open, all.gone = nil, true
	all.mu.Unlock()
	for s := range open {
		s.abandon()
	}
}

// outerConn is the caller's end of a socket.
type outerConn struct {
	*net.UnixConn
	socket *socket
}

// Close hangs up.
func (c *outerConn) Close() error {
	c.socket.hungUp.Store(true)
	return c.UnixConn.Close()
}

// socketPair makes two connected stream sockets.
func socketPair() (a, b *net.UnixConn, err error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	if a, err = unixConn(fds[0]); err != nil {
		_ = syscall.Close(fds[1])
		return nil, nil, err
	}
	if b, err = unixConn(fds[1]); err != nil {
		_ = a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

func unixConn(fd int) (*net.UnixConn, error) {
	file := os.NewFile(uintptr(fd), "socket")
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}
