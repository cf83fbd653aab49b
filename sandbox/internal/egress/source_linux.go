package egress

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// asSource turns the control message with a datagram's destination into one that sends the answer from there.
func asSource(oob []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_IP || m.Header.Type != unix.IP_PKTINFO || len(m.Data) < unix.SizeofInet4Pktinfo {
			continue
		}
		info := *(*unix.Inet4Pktinfo)(unsafe.Pointer(&m.Data[0]))
		return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: info.Addr})
	}
	return nil
}
