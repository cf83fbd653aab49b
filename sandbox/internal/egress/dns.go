package egress

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const dnsPort = 53

// answerTTL is how long a sandbox may cache an address, in seconds. An address stays valid as long as the sandbox lives.
const answerTTL = 60

// mostQuestions bounds the questions of a sandbox in progress; further ones are dropped.
const mostQuestions = 64

// serveNames answers questions until the socket is closed.
func (s *Server) serveNames(conn *net.UDPConn) {
	places := make(chan struct{}, mostQuestions)
	var budget pace
	buffer, oob := make([]byte, 4096), make([]byte, 128)
	for {
		n, oobn, _, from, err := conn.ReadMsgUDPAddrPort(buffer, oob)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// The error of an earlier answer that could not be delivered.
			if !s.pause(time.Millisecond) {
				return
			}
			continue
		}
		if budget.take(s.config.Now()) > 0 {
			// A sandbox that is throttled can ask again in a moment; meanwhile the kernel drops a flood.
			if !s.pause(10 * time.Millisecond) {
				return
			}
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			continue
		}
		// The answer must come from the address that the question went to, which may be any server's.
		question, via := append([]byte(nil), buffer[:n]...), asSource(oob[:oobn])
		s.work.Go(func() {
			defer func() { <-places }()
			if answer := s.answer(question); answer != nil {
				_, _, _ = conn.WriteMsgUDPAddrPort(answer, via, from)
			}
		})
	}
}

// serveNamesStream answers questions on a connection.
func (s *Server) serveNamesStream(conn net.Conn) {
	for {
		_ = conn.SetDeadline(s.config.Now().Add(s.config.Begin))
		var head [2]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(head[:]))
		if _, err := io.ReadFull(conn, question); err != nil {
			return
		}
		answer := s.answer(question)
		if answer == nil {
			return
		}
		_ = conn.SetDeadline(s.config.Now().Add(s.config.Begin))
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// answer returns the reply to a question, or nil for none.
func (s *Server) answer(message []byte) []byte {
	var parser dnsmessage.Parser
	header, err := parser.Start(message)
	if err != nil || header.Response {
		return nil
	}
	reply := dnsmessage.Header{ID: header.ID, Response: true, OpCode: header.OpCode, RecursionDesired: header.RecursionDesired, RecursionAvailable: true}
	if header.OpCode != 0 {
		reply.RCode = dnsmessage.RCodeNotImplemented
		return build(reply, nil, netip.Addr{})
	}
	question, err := parser.Question()
	if err != nil {
		reply.RCode = dnsmessage.RCodeFormatError
		return build(reply, nil, netip.Addr{})
	}
	var addr netip.Addr
	reply.RCode, addr = s.find(canonical(question.Name.String()), question)
	if question.Type != dnsmessage.TypeA && question.Type != dnsmessage.TypeALL {
		addr = netip.Addr{} // no record of that type
	}
	return build(reply, &question, addr)
}

// find looks up a name.
func (s *Server) find(name string, question dnsmessage.Question) (dnsmessage.RCode, netip.Addr) {
	switch {
	case question.Class != dnsmessage.ClassINET && question.Class != dnsmessage.ClassANY:
		return dnsmessage.RCodeRefused, netip.Addr{}
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return dnsmessage.RCodeSuccess, netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case strings.HasSuffix(name, ".arpa") || !isName(name):
		return dnsmessage.RCodeNameError, netip.Addr{}
	case !s.config.Policy.knows(name):
		// Not "refused": programs would take that for a fault of the server, and try again.
		s.log.refuseName(name, "it is not in the allow list")
		s.config.Logger.Debug("a sandbox asked for a name that it may not reach", "name", name)
		return dnsmessage.RCodeNameError, netip.Addr{}
	}
	addr, err := s.names.standIn(s.ctx, name)
	switch {
	case errors.Is(err, errNoName):
		return dnsmessage.RCodeNameError, netip.Addr{}
	case err != nil:
		s.config.Logger.Debug("look up a name for a sandbox", "name", name, "err", err)
		return dnsmessage.RCodeServerFailure, netip.Addr{}
	}
	return dnsmessage.RCodeSuccess, addr
}

func build(header dnsmessage.Header, question *dnsmessage.Question, addr netip.Addr) []byte {
	b := dnsmessage.NewBuilder(nil, header)
	b.EnableCompression()
	err := b.StartQuestions()
	if question != nil {
		err = errors.Join(err, b.Question(*question))
	}
	if addr.IsValid() {
		err = errors.Join(err, b.StartAnswers(), b.AResource(
			dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: answerTTL}, dnsmessage.AResource{A: addr.As4()}))
	}
	message, finishErr := b.Finish()
	if errors.Join(err, finishErr) != nil {
		return nil
	}
	return message
}
