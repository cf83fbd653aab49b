package box

import (
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/egress"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// GuestNetwork returns the guest's constant for a network.
func GuestNetwork(n sandbox.Network) int64 {
	switch n {
	case sandbox.NetworkNone:
		return guest.NetworkNone
	case sandbox.NetworkAllowlist, sandbox.NetworkFull:
		return guest.NetworkCarried
	}
	return guest.NetworkLoopback
}

// carried is what a sandbox reaches of the network.
type carried struct {
	server *egress.Server         // nil when the sandbox reaches nothing
	lacks  atomic.Pointer[string] // why some connections are not carried, nil when all are
}

// begin makes the server that carries the connections of a sandbox.
func (c *carried) begin(spec sandbox.Spec, logger *slog.Logger) {
	if GuestNetwork(spec.Network) != guest.NetworkCarried {
		return
	}
	rules, _ := egress.Parse(spec.Allow) // Spec.Complete has reported the error
	config := egress.Config{Policy: egress.Policy{Full: spec.Network == sandbox.NetworkFull, Allow: rules}, Logger: logger}
	c.server = egress.New(config)
}

// take takes over the sockets that a guest made for its network.
func (c *carried) take(d *wire.Decoder, fds []int) {
	lacks, _ := d.String(), d.Bool()
	if c.server == nil || d.Err() != nil {
		wire.CloseAll(fds)
		return
	}
	if lacks != "" {
		c.lacks.Store(&lacks)
	}
	var names *net.UDPConn
	var listeners []net.Listener
	for _, fd := range fds {
		file := os.NewFile(uintptr(fd), "socket of a sandbox")
		if l, err := net.FileListener(file); err == nil {
			listeners = append(listeners, l)
		} else if p, err := net.FilePacketConn(file); err == nil {
			if udp, ok := p.(*net.UDPConn); ok && names == nil {
				names = udp
			} else {
				_ = p.Close()
			}
		}
		_ = file.Close()
	}
	c.server.Add(names, listeners)
}

// Lacks returns why some connections are not carried, or "" when all are.
func (c *carried) Lacks() string {
	if reason := c.lacks.Load(); reason != nil {
		return *reason
	}
	return ""
}

// end stops the server, and waits until it has ended.
func (c *carried) end() error {
	if c.server == nil {
		return nil
	}
	return c.server.Close()
}

// Connections implements Traffic.
func (c *carried) Connections() []sandbox.Connection {
	if c.server == nil {
		return nil
	}
	return c.server.Connections()
}
