package guest

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// netlink is a list of requests to the kernel, in its byte order. There are too few of them for a library in every sandbox.
type netlink struct {
	buf   []byte
	start int // offset of the last message
	acks  int // how many acknowledgements to expect
}

// message begins a request. Its header comes before the attributes.
func (n *netlink) message(kind, flags uint16, header ...byte) {
	n.start = len(n.buf)
	n.buf = append(n.buf, make([]byte, unix.SizeofNlMsghdr)...)
	binary.NativeEndian.PutUint16(n.buf[n.start+4:], kind)
	binary.NativeEndian.PutUint16(n.buf[n.start+6:], flags|unix.NLM_F_REQUEST)
	if flags&unix.NLM_F_ACK != 0 {
		n.acks++
	}
	n.append(header)
}

// append adds bytes, padded, to the message.
func (n *netlink) append(data []byte) {
	n.buf = append(n.buf, data...)
	for len(n.buf)%4 != 0 {
		n.buf = append(n.buf, 0)
	}
	binary.NativeEndian.PutUint32(n.buf[n.start:], uint32(len(n.buf)-n.start))
}

func (n *netlink) attr(kind uint16, data []byte) {
	head := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	n.append(append(binary.NativeEndian.AppendUint16(head, kind), data...))
}

func (n *netlink) text(kind uint16, s string) { n.attr(kind, append([]byte(s), 0)) }

// number adds a number in network byte order, as the firewall expects it.
func (n *netlink) number(kind uint16, v uint32) { n.attr(kind, binary.BigEndian.AppendUint32(nil, v)) }

// nest adds an attribute that contains attributes.
func (n *netlink) nest(kind uint16, body func()) {
	at := len(n.buf)
	n.attr(kind|unix.NLA_F_NESTED, nil)
	body()
	binary.NativeEndian.PutUint16(n.buf[at:], uint16(len(n.buf)-at))
}

// send sends the requests, and returns when all are done or one has failed.
func (n *netlink) send(protocol int) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return fmt.Errorf("make a netlink socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		return err
	}
	if err := unix.Sendto(fd, n.buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("ask the kernel: %w", err)
	}
	answers := make([]byte, 8<<10)
	for n.acks > 0 {
		length, _, err := unix.Recvfrom(fd, answers, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the answer of the kernel: %w", err)
		}
		for rest := answers[:length]; len(rest) >= unix.SizeofNlMsghdr+4; {
			size := binary.NativeEndian.Uint32(rest)
			if binary.NativeEndian.Uint16(rest[4:]) == unix.NLMSG_ERROR {
				n.acks--
				if code := int32(binary.NativeEndian.Uint32(rest[unix.SizeofNlMsghdr:])); code != 0 {
					return unix.Errno(-code)
				}
			}
			rest = rest[min(len(rest), max(int(size+3)&^3, unix.SizeofNlMsghdr)):]
		}
	}
	return nil
}
