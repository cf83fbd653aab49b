// Package egress carries the connections of sandboxes with access to the network. A sandbox has no way out of its own: its
// sockets for names and for connections end here, where a policy decides.
package egress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"trajgen/sandbox/addresses"
)

// Config configures a Server. The zero value allows nothing.
type Config struct {
	Policy Policy
	Logger *slog.Logger // logs every attempt at level debug; nil logs nothing
	// Lookup finds the addresses of a name. Nil uses this machine's resolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects. Nil uses the net package.
	Dial func(ctx context.Context, target netip.AddrPort) (net.Conn, error)
	// Own reports whether an address is this machine's. Nil asks the system.
	Own func(netip.Addr) (bool, error)
	Now func() time.Time // nil is time.Now

	Most  int           // connections at a time; 0 is 512
	Idle  time.Duration // time without a byte either way that ends a connection; 0 is 15 minutes
	Total time.Duration // longest life of a connection; 0 is a day
	// Begin is how long a client may take to send what is judged before connecting; 0 is 15 seconds.
	Begin time.Duration
}

func (c Config) complete() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Lookup == nil {
		c.Lookup = lookup
	}
	if c.Dial == nil {
		dialer := &net.Dialer{Timeout: 15 * time.Second}
		c.Dial = func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", target.String())
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Own == nil {
		c.Own = func(addr netip.Addr) (bool, error) { return addresses.Own(addr, c.Now()) }
	}
	if c.Most == 0 {
		c.Most = 512
	}
	for _, d := range []struct {
		is      *time.Duration
		without time.Duration
	}{{&c.Idle, 15 * time.Minute}, {&c.Total, 24 * time.Hour}, {&c.Begin, 15 * time.Second}} {
		if *d.is == 0 {
			*d.is = d.without
		}
	}
	return c
}

// lookup does not try this machine's search domains.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

// Server serves one sandbox.
type Server struct {
	config Config
	names  *names
	log    *log

	ctx    context.Context // for all work; ends with Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	places chan struct{} // holds a token for each connection

	mu      sync.Mutex // guards what follows
	closed  bool
	sockets []interface{ Close() error }        // of the sandbox's present network
	open    map[interface{ Close() error }]bool // what Close has to close
}

var errClosed = errors.New("the sandbox is closed")

// New makes a Server that has no sockets yet.
func New(config Config) *Server {
	config = config.complete()
	s := &Server{config: config, log: newLog(config.Now), open: map[interface{ Close() error }]bool{}, places: make(chan struct{}, config.Most)}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.names = newNames(config)
	return s
}

// Add takes over sockets of the sandbox: one for name lookups, or nil, and listeners, whose connections have the intended
// address as their local one. When there is one for names, the sandbox has a new network, and Add closes the earlier sockets.
func (s *Server) Add(names *net.UDPConn, listeners []net.Listener) {
	s.mu.Lock()
	if names != nil {
		for _, old := range s.sockets {
			_ = old.Close()
		}
		s.sockets = []interface{ Close() error }{names}
	}
	for _, l := range listeners {
		s.sockets = append(s.sockets, l)
	}
	s.mu.Unlock()
	if names != nil && s.keep(names) {
		s.work.Go(func() {
			defer s.drop(names)
			s.serveNames(names)
		})
	}
	for _, l := range listeners {
		if s.keep(l) {
			s.work.Go(func() {
				defer s.drop(l)
				s.accept(l)
			})
		}
	}
}

// Connections returns all attempts so far, in the order in which they began.
func (s *Server) Connections() []Connection { return s.log.all() }

// Close ends all connections and waits for their end. It is idempotent.
func (s *Server) Close() error {
	s.cancel(errClosed)
	s.mu.Lock()
	s.closed = true
	for c := range s.open {
		abort(c)
	}
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// keep registers c for Close. After Close, it closes c and returns false.
func (s *Server) keep(c interface{ Close() error }) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		abort(c)
		return false
	}
	s.open[c] = true
	return true
}

func (s *Server) drop(c interface{ Close() error }) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// abort closes a connection with a reset, so that the peer notices.
func abort(c interface{ Close() error }) {
	if tcp, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// accept serves a listener until it is closed.
func (s *Server) accept(l net.Listener) {
	var budget pace
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, or a connection that ended at once: neither lasts.
			s.config.Logger.Debug("accept a connection of a sandbox", "err", err)
			if !s.pause(10 * time.Millisecond) {
				return
			}
			continue
		}
		for wait := budget.take(s.config.Now()); wait > 0; wait = budget.take(s.config.Now()) {
			if !s.pause(wait) {
				abort(conn)
				return
			}
		}
		target, err := target(conn)
		if err != nil {
			abort(conn)
			continue
		}
		if !s.enter() {
			s.log.add(Connection{Host: s.host(target.Addr()), Port: int(target.Port()), Refused: "too many connections at once"})
			abort(conn)
			continue
		}
		if !s.keep(conn) {
			s.leave()
			return
		}
		s.work.Go(func() {
			defer s.leave()
			defer s.drop(conn)
			if target.Port() == dnsPort && !target.Addr().IsLoopback() {
				s.serveNamesStream(conn)
				return
			}
			s.carry(conn, target)
		})
	}
}

// pause waits. It returns false when the sandbox is closed meanwhile.
func (s *Server) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// target returns where a connection was meant to go: the address of our end.
func target(conn net.Conn) (netip.AddrPort, error) {
	addr, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%v is not an address of TCP", conn.LocalAddr())
	}
	at := addr.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}

// host returns the name or address that the sandbox uses.
func (s *Server) host(addr netip.Addr) string {
	if name := s.names.of(addr); name != "" {
		return name
	}
	return addr.String()
}

// enter takes a place for a connection, of this sandbox's and of this program's.
func (s *Server) enter() bool {
	select {
	case s.places <- struct{}{}:
	default:
		return false
	}
	select {
	case allPlaces() <- struct{}{}:
		return true
	default:
		<-s.places
		return false
	}
}

func (s *Server) leave() {
	<-allPlaces()
	<-s.places
}
