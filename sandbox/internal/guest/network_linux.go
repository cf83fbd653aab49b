package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/wire"
)

// In a sandbox whose connections the runner carries, a route makes every address local. Connections to addresses other than
// loopback and the sandbox's own go to one listener; the local address of an accepted socket is the intended one. The guest
// makes the listeners and passes them to the runner, so that a command never reaches the host's network.
const (
	// catchPort is the port of that listener; direct connections to it are useless.
	catchPort = 65533
	dnsPort   = 53
)

// Addresses of such a sandbox, all in ranges for tests: the one in /etc/resolv.conf, and its own.
var (
	nameServer = [4]byte{198, 18, 0, 1}
	ownAddress = [4]byte{198, 18, 0, 2}
	ownSix     = [16]byte{0xfd, 0x00, 0x01, 0x98, 0x00, 0x18, 15: 2}
)

// unused is an address that the runner never gives to a name: for a trial.
var unused = [4]byte{198, 18, 0, 3}

const resolvConf = "nameserver 198.18.0.1\n"

// setUpNetwork sets up Boot.Network.
func setUpNetwork(runner *wire.Conn, boot *Boot) error {
	switch boot.Network {
	case NetworkLoopback:
		return loopback()
	case NetworkCarried:
		if err := carried(runner, boot.Ports); err != nil {
			return fmt.Errorf("prepare the network: %w", err)
		}
	}
	return nil
}

// nameServer writes the address of the name server. A snapshot may come from a sandbox with another network.
func (r *root) nameServer() error {
	const name = "/etc/resolv.conf"
	if r.boot.Network != NetworkCarried {
		return nil
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return put(name, []byte(resolvConf), 0o644)
}

// loopback brings the interface lo up.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	return nil
}

// carried passes the runner sockets for names and for connections: one for all, or where the kernel cannot redirect
// connections, one for each of the ports.
func carried(runner *wire.Conn, ports []int64) error {
	if err := loopback(); err != nil {
		return err
	}
	if err := everyAddress(unix.AF_INET, ownAddress[:]); err != nil {
		return err
	}
	// Without IPv6, its addresses are unreachable at once, as on many machines.
	_ = everyAddress(unix.AF_INET6, ownSix[:])
	var fds []int
	defer func() { wire.CloseAll(fds) }()
	keep := func(fd int, err error) error {
		if err == nil {
			fds = append(fds, fd)
		}
		return err
	}
	if err := keep(nameSocket()); err != nil {
		return err
	}
	var lacks string
	if err := keep(catchAll()); err != nil {
		lacks = err.Error()
		if err := keep(listener(dnsPort, &unix.SockaddrInet4{Port: dnsPort, Addr: nameServer}, false)); err != nil {
			return err
		}
		for _, port := range ports {
			if err := keep(listener(int(port), nil, false)); err != nil {
				return err
			}
		}
	}
	return handOver(runner, lacks, fds)
}

// handOver sends the sockets, the one for names first, in as many messages as needed.
func handOver(runner *wire.Conn, lacks string, fds []int) error {
	for {
		some := fds[:min(len(fds), 6)]
		fds = fds[len(some):]
		var e wire.Encoder
		e.Int(KindListeners)
		e.Int(0)
		e.String(lacks)
		e.Bool(len(fds) > 0)
		if err := runner.Send(e.Bytes, some...); err != nil {
			return fmt.Errorf("hand over listeners: %w", err)
		}
		if len(fds) == 0 {
			return nil
		}
	}
}

// everyAddress makes all addresses of a family local. own is the source address of connections: with an address that is not
// loopback, programs also believe that there is a network.
func everyAddress(family byte, own []byte) error {
	const lo = 1
	create := uint16(unix.NLM_F_ACK | unix.NLM_F_CREATE)
	var n netlink
	n.message(unix.RTM_NEWADDR, create, family, byte(8*len(own)), unix.IFA_F_NODAD, 0, lo, 0, 0, 0)
	binary.NativeEndian.PutUint32(n.buf[len(n.buf)-4:], lo)
	n.attr(unix.IFA_LOCAL, own)
	n.attr(unix.IFA_ADDRESS, own)
	n.message(unix.RTM_NEWROUTE, create, family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL,
		0, 0, 0, 0)
	n.attr(unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, lo))
	n.attr(unix.RTA_PREFSRC, own)
	if err := n.send(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("route all addresses to lo: %w", err)
	}
	return nil
}

// catchAll returns a listener that gets every connection to addresses other than loopback, and redirects name lookups at any
// server to ours. It makes a trial connection first.
func catchAll() (int, error) {
	fd, err := listener(catchPort, nil, true)
	if err != nil {
		return -1, err
	}
	if err = lead(); err == nil {
		err = try(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// listener listens on a port of every address, or of one.
func listener(port int, address unix.Sockaddr, transparent bool) (fd int, err error) {
	family := unix.AF_INET6
	if address == nil {
		address = &unix.SockaddrInet6{Port: port}
	} else {
		family = unix.AF_INET
	}
	fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == unix.EAFNOSUPPORT {
		family, address = unix.AF_INET, &unix.SockaddrInet4{Port: port}
		fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("listen on port %d: %w", port, err)
	}
	if family == unix.AF_INET6 {
		err = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 0)
	}
	// An accepted connection occupies its local port, on which a server of the sandbox may want to listen, too.
	err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	if transparent {
		err = errors.Join(err, setTransparent(fd, family))
	}
	if err == nil {
		err = unix.Bind(fd, address)
	}
	if err == nil {
		err = unix.Listen(fd, 1024)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on port %d: %w", port, err)
	}
	return fd, nil
}

func setTransparent(fd, family int) error {
	if family == unix.AF_INET6 {
		return unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1)
	}
	return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
}

// nameSocket returns the socket for name lookups. It gets the destination of each question, from where the answer must come.
func nameSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make a socket for names: %w", err)
	}
	// Without it, questions to other servers get no answer.
	_ = setTransparent(fd, unix.AF_INET)
	err = unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_PKTINFO, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: dnsPort, Addr: nameServer})
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("make a socket for names: %w", err)
	}
	return fd, nil
}

// try connects to an unused address and checks that the connection arrives with that address. On lo, all of this happens within
// the call to connect.
func try(listener int) error {
	const port = 9
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(client)
	if err := unix.Connect(client, &unix.SockaddrInet4{Port: port, Addr: unused}); err != nil && err != unix.EINPROGRESS {
		return fmt.Errorf("try the rules of the firewall: %w", err)
	}
	arrived := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	if n, err := unix.Poll(arrived, 1000); n != 1 {
		return fmt.Errorf("try the rules of the firewall: %w", errors.Join(os.ErrDeadlineExceeded, err))
	}
	accepted, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return fmt.Errorf("try the rules of the firewall: %w", err)
	}
	defer unix.Close(accepted)
	name, err := unix.Getsockname(accepted)
	if err != nil {
		return err
	}
	var got [4]byte
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		got = a.Addr
	case *unix.SockaddrInet6:
		got = [4]byte(a.Addr[12:])
	}
	if got != unused {
		return fmt.Errorf("try the rules of the firewall: a connection to %v arrived as one to %v", unused, got)
	}
	return nil
}
