// Package egress carries the connections of sandboxes that may reach some of the world, or all of it. A sandbox has no
// way out of its own: its sockets for names and for connections end here, where a policy decides.
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
)

// Config is what a Server needs. The zero value reaches nothing.
type Config struct {
	Policy Policy
	Logger *slog.Logger // at level debug, of every attempt; nil is silent
	// Lookup finds the addresses of a name. Nil asks as this machine does.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Dial connects. Nil does.
	Dial func(ctx context.Context, target netip.AddrPort) (net.Conn, error)
	// Own says whether an address is this machine's. Nil asks the system.
	Own func(netip.Addr) (bool, error)
	Now func() time.Time // nil is time.Now

	Most  int           // connections at once; 0 is 512
	Idle  time.Duration // without a byte either way before a connection is ended; 0 is 15 minutes
	Total time.Duration // before any connection is ended; 0 is a day
	// Begin is how long a client may take for what has to be seen before it is connected; 0 is 15 seconds.
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
		c.Own = func(addr netip.Addr) (bool, error) { return isOwn(addr, c.Now()) }
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

// lookup does not try the domains that this machine likes to add to a name.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

// Server serves one sandbox.
type Server struct {
	config Config
	names  *names
	log    *log

	ctx    context.Context // of all work; ends with Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	places chan struct{} // holds a token for each connection

	mu      sync.Mutex // guards what follows
	closed  bool
	sockets []interface{ Close() error }        // of the network that the sandbox has now
	open    map[interface{ Close() error }]bool // is closed by Close
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

// Add takes over sockets of the sandbox: one that names are asked at, or nil, and listeners whose connections bear the
// address that was meant. Those that came before are closed when there is one for names: the sandbox was given another
// network then.
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

// Connections returns all attempts so far, in the order of their beginning.
func (s *Server) Connections() []Connection { return s.log.all() }

// Close ends all connections and waits until that is done. It is idempotent.
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

// keep makes sure that Close will close c. When it was called before, keep closes c and returns false.
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

// abort closes a connection so that the other side notices: with a reset.
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
			// No descriptors left, or a connection that ended at once: neither is for ever.
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

// target is what a connection was meant for: it is the address of our end of it.
func target(conn net.Conn) (netip.AddrPort, error) {
	addr, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%v is no address of TCP", conn.LocalAddr())
	}
	at := addr.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
}

// host is what the sandbox knows an address as.
func (s *Server) host(addr netip.Addr) string {
	if name := s.names.of(addr); name != "" {
		return name
	}
	return addr.String()
}

// enter takes one of the places that there are, of this sandbox's and of this program's.
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
