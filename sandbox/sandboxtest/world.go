package sandboxtest

import (
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// ServeNames answers questions about names until the connection is closed. Find knows the addresses of a name, and gets to know
// whether the question is for those of IPv4.
func ServeNames(conn net.PacketConn, find func(name string, v4 bool) ([]netip.Addr, bool)) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var question dnsmessage.Message
		if question.Unpack(buffer[:n]) != nil || len(question.Questions) != 1 {
			continue
		}
		q := question.Questions[0]
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: question.ID, Response: true, RecursionAvailable: true}, Questions: question.Questions}
		addresses, ok := find(strings.TrimSuffix(q.Name.String(), "."), q.Type == dnsmessage.TypeA)
		if !ok {
			reply.RCode = dnsmessage.RCodeNameError
		}
		for _, a := range addresses {
			header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 0}
			switch {
			case a.Is4() && q.Type == dnsmessage.TypeA:
				reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
			case a.Is6() && q.Type == dnsmessage.TypeAAAA:
				reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		if packed, err := reply.Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

// ServeEach serves each connection until the listener is closed.
func ServeEach(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			serve(c)
		}()
	}
}
