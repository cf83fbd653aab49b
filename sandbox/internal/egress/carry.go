package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// tries is how many addresses of a name are tried.
	tries = 4
	// little is how many bytes are copied in pieces that count at once. More are copied in chunks, by the kernel alone where it
	// can, and count chunk by chunk.
	little = 1 << 20
	chunk  = 1 << 20
	// tick is how often a copy without data checks for idleness, in parts of the idle time.
	tick = 8
)

// proxied is one connection of the sandbox, with both its ends.
type proxied struct {
	server *Server
	record *record
	name   string // the requested name, or ""
	target netip.AddrPort
	inner  net.Conn // from the sandbox
	outer  net.Conn // to the target

	moved atomic.Int64 // time of the last byte, in nanoseconds since 1970
}

// refusal is the reason why a connection is not allowed.
type refusal string

func (r refusal) Error() string { return string(r) }

// carry judges a connection, makes it and copies both ways until both have ended.
func (s *Server) carry(conn net.Conn, target netip.AddrPort) {
	c := &proxied{server: s, inner: conn, target: target, name: s.names.of(target.Addr())}
	c.record = s.log.add(Connection{Host: s.host(target.Addr()), Port: int(target.Port())})
	err := c.run()
	if err == nil {
		return
	}
	c.note(err)
	// At once, so that the sandbox does not wait in vain.
	abort(conn)
	s.config.Logger.Debug("a connection of a sandbox came to nothing", "host", s.host(target.Addr()), "port", target.Port(), "err", err)
}

// note records why the connection ended.
func (c *proxied) note(err error) {
	cut := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, net.ErrClosed)
	switch refused, ok := errors.AsType[refusal](err); {
	case ok:
		c.record.refuse(string(refused))
	case cut && c.outer != nil:
		// Some clients and servers end a finished connection with a reset.
	case !errors.Is(context.Cause(c.server.ctx), errClosed):
		c.record.fail(err)
	}
}

func (c *proxied) run() error {
	if reason := c.judge(); reason != "" {
		return refusal(reason)
	}
	begin, err := c.opening()
	if err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	defer c.server.drop(c.outer)
	c.server.config.Logger.Debug("a sandbox connects", "host", c.server.host(c.target.Addr()), "port", c.target.Port(), "address", c.outer.RemoteAddr())
	return c.exchange(begin)
}

// judge returns the reason to refuse the target, or "".
func (c *proxied) judge() string {
	policy := c.server.config.Policy
	switch {
	case c.name != "":
		return policy.name(c.name, c.target.Port())
	case c.target.Addr().Is4() && standInRange.Contains(c.target.Addr()):
		return "no name has this address"
	}
	return c.address(c.target.Addr(), true)
}

var standInRange = netip.MustParsePrefix("198.18.0.0/15")

func (c *proxied) address(addr netip.Addr, direct bool) string {
	if reason := c.server.config.Policy.address(addr, c.target.Port(), direct); reason != "" {
		return reason
	}
	own, err := c.server.config.Own(addr)
	switch {
	case err != nil:
		return fmt.Sprintf("it may be an address of this machine: %v", err)
	case own:
		return "it is an address of this machine"
	}
	return ""
}

// connect resolves the name, judges the address, and connects to that same address.
func (c *proxied) connect() error {
	ctx, cancel := context.WithTimeout(c.server.ctx, 30*time.Second)
	defer cancel()
	addresses := []netip.Addr{c.target.Addr()}
	if c.name != "" {
		found, err := c.server.names.resolve(ctx, c.name)
		if err != nil {
			return err
		}
		var reason string
		addresses = slices.DeleteFunc(slices.Clone(found), func(addr netip.Addr) bool {
			why := c.address(addr, false)
			if why != "" && reason == "" {
				reason = fmt.Sprintf("its address is %v: %s", addr, why)
			}
			return why != ""
		})
		if len(addresses) == 0 {
			return refusal(reason)
		}
	}
	var errs []error
	for _, addr := range addresses[:min(len(addresses), tries)] {
		target := netip.AddrPortFrom(addr.Unmap(), c.target.Port())
		conn, err := c.server.config.Dial(ctx, target)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !c.server.keep(conn) {
			return errClosed
		}
		c.outer = conn
		c.record.reached(target.String())
		return nil
	}
	return errors.Join(errs...)
}

// exchange copies both ways. The end of one side's data closes that direction only; an error ends both.
func (c *proxied) exchange(begin sender) error {
	c.move()
	stopped := make(chan error, 1) // buffers the first reason
	stop := func(err error) {
		select {
		case stopped <- err:
			c.note(err)
			abort(c.inner)
			abort(c.outer)
		default:
		}
	}
	watch := time.AfterFunc(c.server.config.Total, func() { stop(fmt.Errorf("ended after %v", c.server.config.Total)) })
	defer watch.Stop()
	idle := c.watchIdle(stop)
	defer idle()
	var both sync.WaitGroup
	both.Go(func() {
		if err := c.copy(c.inner, c.outer, &c.record.received); err != nil {
			stop(err)
		}
	})
	if err := begin(c); err != nil {
		stop(err)
	}
	both.Wait()
	select {
	case err := <-stopped:
		return err
	default:
		return nil
	}
}

// copy copies from one connection to the other until the end, and then closes that direction.
func (c *proxied) copy(to, from net.Conn, count *atomic.Int64) error {
	if ended, err := c.copyLittle(to, from, count); ended || err != nil {
		return err
	}
	for {
		_ = from.SetReadDeadline(c.server.config.Now().Add(c.server.config.Idle / tick))
		n, err := io.CopyN(to, from, chunk)
		count.Add(n)
		if n > 0 {
			c.move()
		}
		switch {
		case err == io.EOF:
			return closeWrite(to)
		case errors.Is(err, os.ErrDeadlineExceeded), err == nil:
		default:
			return err
		}
	}
}

var pieces = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (c *proxied) copyLittle(to, from net.Conn, count *atomic.Int64) (ended bool, err error) {
	piece := pieces.Get().(*[32 << 10]byte)
	defer pieces.Put(piece)
	_ = from.SetReadDeadline(time.Time{})
	for copied := 0; copied < little; {
		n, err := from.Read(piece[:])
		if n > 0 {
			copied += n
			// Count before the server can have answered.
			count.Add(int64(n))
			c.move()
			if _, err := to.Write(piece[:n]); err != nil {
				return false, err
			}
		}
		if err == io.EOF {
			return true, closeWrite(to)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func closeWrite(conn net.Conn) error {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return conn.Close()
	}
	if err := half.CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) {
		return err
	}
	return nil
}

func (c *proxied) move() { c.moved.Store(c.server.config.Now().UnixNano()) }

// watchIdle stops the connection when no byte has moved for long, also because one side does not read.
func (c *proxied) watchIdle(stop func(error)) (end func()) {
	idle := c.server.config.Idle
	var mu sync.Mutex // guards what follows
	var timer *time.Timer
	ended := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(idle/tick, func() {
		if c.server.config.Now().UnixNano()-c.moved.Load() >= int64(idle) {
			stop(fmt.Errorf("ended when no byte had moved for %v", idle))
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			timer.Reset(idle / tick)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}
}
