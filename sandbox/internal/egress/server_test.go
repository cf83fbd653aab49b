package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a server, and a sandbox's way to it: connections arrive as if meant for an address.
type site struct {
	*testing.T
	server *Server
	meant  atomic.Pointer[net.TCPAddr]
	door   net.Listener
	serve  func(net.Conn)
}

// meaning is a listener whose connections say that they were meant for the site's address.
type meaning struct {
	net.Listener
	site *site
}

type meant struct {
	*net.TCPConn
	addr net.Addr
}

func (m meant) LocalAddr() net.Addr { return m.addr }

func (m meaning) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return meant{c.(*net.TCPConn), m.site.meant.Load()}, nil
}

func newSite(t *testing.T, config Config, serve func(net.Conn)) *site {
	t.Helper()
	s := &site{T: t, serve: serve}
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := behind.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	if s.door, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if config.Lookup == nil {
		config.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		}
	}
	if config.Dial == nil {
		config.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", behind.Addr().String())
		}
	}
	s.server = New(config)
	s.server.Add(nil, []net.Listener{meaning{s.door, s}})
	t.Cleanup(func() {
		_ = s.server.Close()
		behind.Close()
		<-served
	})
	return s
}

// to connects as the sandbox does, to a name or address.
func (s *site) to(host string, port int) *net.TCPConn {
	s.Helper()
	c, err := s.dial(host, port)
	if err != nil {
		s.Fatal(err)
	}
	return c
}

// refuses connects and expects to be cut off, be it at once.
func (s *site) refuses(host string, port int) {
	s.Helper()
	c, err := s.dial(host, port)
	if err == nil {
		_, err = io.Copy(io.Discard, c)
	}
	if err == nil {
		s.Error("it went through")
	}
}

func (s *site) dial(host string, port int) (*net.TCPConn, error) {
	s.Helper()
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if addr, err = s.server.names.standIn(s.Context(), host); err != nil {
			s.Fatal(err)
		}
	}
	s.meant.Store(net.TCPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(port))))
	c, err := net.Dial("tcp", s.door.Addr().String())
	if err != nil {
		return nil, err
	}
	s.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c.(*net.TCPConn), nil
}

func (s *site) last() Connection {
	s.Helper()
	all := s.server.Connections()
	if len(all) == 0 {
		s.Fatal("nothing is listed")
	}
	return all[len(all)-1]
}

func (s *site) eventually(what string, ok func() bool) {
	s.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if ok() {
			return
		}
	}
	s.Fatalf("never came: %s; %+v", what, s.server.Connections())
}

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

func TestIdle(t *testing.T) {
	s := newSite(t, Config{Policy: Policy{Full: true}, Idle: 200 * time.Millisecond}, echo)
	c := s.to("example.org", 7)
	// As long as something moves, it lives.
	begin := time.Now()
	for range 8 {
		time.Sleep(50 * time.Millisecond)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(begin) > 20*time.Second {
		t.Errorf("after %v: got %v", time.Since(begin), err)
	}
	s.eventually("the reason", func() bool { return strings.Contains(s.last().Failed, "no byte had moved") })
	if got := s.last(); got.Sent != 8 || got.Received != 8 {
		t.Errorf("got %+v", got)
	}
}

// TestIdleWithoutTakers has a server that never takes what it is told.
func TestIdleWithoutTakers(t *testing.T) {
	stop := make(chan struct{})
	s := newSite(t, Config{Policy: Policy{Full: true}, Idle: 200 * time.Millisecond}, func(net.Conn) { <-stop })
	defer close(stop)
	c := s.to("example.org", 7)
	if _, err := io.Copy(c, zeros{}); err == nil {
		t.Error("it took all")
	}
	s.eventually("the reason", func() bool { return strings.Contains(s.last().Failed, "no byte had moved") })
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestTotal(t *testing.T) {
	s := newSite(t, Config{Policy: Policy{Full: true}, Total: 100 * time.Millisecond}, func(c net.Conn) { _, _ = io.Copy(c, zeros{}) })
	if n, err := io.Copy(io.Discard, s.to("example.org", 7)); err == nil || n == 0 {
		t.Errorf("got %d bytes, %v", n, err)
	}
	s.eventually("the reason", func() bool { return strings.Contains(s.last().Failed, "ended after") })
}

func TestSilentClient(t *testing.T) {
	rules, _ := Parse([]string{"example.org"})
	s := newSite(t, Config{Policy: Policy{Allow: rules}, Begin: 50 * time.Millisecond}, echo)
	for _, port := range []int{80, 443} {
		if _, err := s.to("example.org", port).Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("port %d: got %v", port, err)
		}
		s.eventually("the reason", func() bool { return strings.Contains(s.last().Refused, "within 50ms") })
	}
}

// TestFirstWord is about ports where the server may be the first to speak.
func TestFirstWord(t *testing.T) {
	rules, _ := Parse([]string{"example.org:25"})
	s := newSite(t, Config{Policy: Policy{Allow: rules}, Begin: 100 * time.Millisecond}, func(c net.Conn) {
		_, _ = io.WriteString(c, "220 hello\r\n")
		echo(c)
	})
	c := s.to("example.org", 25)
	got := make([]byte, 11)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "220 hello\r\n" {
		t.Fatalf("got %q, %v", got, err)
	}
	_, _ = io.WriteString(c, "EHLO x")
	_ = c.CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "EHLO x" {
		t.Errorf("got %q, %v", got, err)
	}
	c = s.to("example.org", 25)
	if _, err := c.Write([]byte{22, 3, 1, 0, 1, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); err == nil {
		t.Error("TLS without a name goes through")
	}
	s.eventually("the reason", func() bool { return strings.Contains(s.last().Refused, "TLS") })
}

// TestOneLook has a name server that changes its mind between the look at an address and the connection to it.
func TestOneLook(t *testing.T) {
	var asked, dialled, later atomic.Int64
	config := Config{Policy: Policy{Full: true}, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }}
	config.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		if asked.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:169.254.169.254")}, nil
	}
	config.Dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
		dialled.Add(1)
		return nil, errors.New("no network")
	}
	s := newSite(t, config, echo)
	if _, err := s.server.names.standIn(t.Context(), "example.org"); err != nil {
		t.Fatal(err)
	}
	later.Store(int64(time.Hour))
	s.refuses("example.org", 80)
	s.eventually("a refusal", func() bool { return strings.Contains(s.last().Refused, "loopback") })
	if dialled.Load() > 0 {
		t.Error("it was dialled")
	}
}

func TestFailed(t *testing.T) {
	config := Config{Policy: Policy{Full: true}, Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}}
	s := newSite(t, config, echo)
	s.refuses("example.org", 80)
	s.eventually("the reason", func() bool { return s.last().Failed == "connection refused" })
}

func TestListIsBounded(t *testing.T) {
	l := newLog(time.Now)
	for i := range mostListed + 5 {
		l.add(Connection{Host: "h", Port: i})
		l.refuseName("refused.example", "why")
	}
	all := l.all()
	if len(all) != mostListed+1 || all[mostListed].Host != "" || !strings.HasPrefix(all[mostListed].Failed, "6 more") {
		t.Errorf("got %d, the last %+v", len(all), all[len(all)-1])
	}
}

func TestClose(t *testing.T) {
	s := newSite(t, Config{Policy: Policy{Full: true}}, echo)
	c := s.to("example.org", 7)
	_, _ = c.Write([]byte("x"))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.server.Close() }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("it does not end")
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives on")
	}
	if got := s.last(); got.Sent != 1 || got.Received != 1 || got.Failed != "" {
		t.Errorf("got %+v", got)
	}
}

func TestPace(t *testing.T) {
	var p pace
	now := time.Unix(0, 0)
	for i := range burst {
		if wait := p.take(now); wait != 0 {
			t.Fatalf("%d: wait %v", i, wait)
		}
	}
	if wait := p.take(now); wait != time.Second/perSecond {
		t.Errorf("got %v", wait)
	}
	// Who has to wait pays nothing for it.
	if wait := p.take(now.Add(time.Second / perSecond)); wait != 0 {
		t.Errorf("after that: wait %v", wait)
	}
	for i := range perSecond {
		if wait := p.take(now.Add(1100 * time.Millisecond)); wait != 0 {
			t.Fatalf("a second later, %d: wait %v", i, wait)
		}
	}
}
