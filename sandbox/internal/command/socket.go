package command

import (
	"net"
	"os"
	"syscall"
)

// SocketPair makes two connected stream sockets: one for the runner, and one as a file to pass on.
func SocketPair() (*net.UnixConn, *os.File, error) {
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
	theirs := os.NewFile(uintptr(fds[1]), "socket")
	ours, err := Connection(os.NewFile(uintptr(fds[0]), "socket"))
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// Connection makes a connection from the file of a stream socket.
func Connection(socket *os.File) (*net.UnixConn, error) {
	defer socket.Close()
	c, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}
