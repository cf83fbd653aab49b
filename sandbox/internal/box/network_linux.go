package box

import (
	"log/slog"
	"net"
	"os"

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

// newCarrier returns the server that carries the connections of a sandbox, or nil.
func newCarrier(spec sandbox.Spec, logger *slog.Logger) *egress.Server {
	if GuestNetwork(spec.Network) != guest.NetworkCarried {
		return nil
	}
	rules, _ := egress.Parse(spec.Allow) // Spec.Complete has reported the error
	config := egress.Config{Policy: egress.Policy{Full: spec.Network == sandbox.NetworkFull, Allow: rules}, Logger: logger}
	return egress.New(config)
}

// carry takes over the sockets that a guest made for its network.
func (b *Box) carry(d *wire.Decoder, fds []int) {
	lacks, _ := d.String(), d.Bool()
	if b.carrier == nil || d.Err() != nil {
		wire.CloseAll(fds)
		return
	}
	if lacks != "" {
		b.lacks.Store(&lacks)
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
	b.carrier.Add(names, listeners)
}

// Lacks returns why some connections are not carried, or "" when all are.
func (b *Box) Lacks() string {
	if reason := b.lacks.Load(); reason != nil {
		return *reason
	}
	return ""
}

// stopCarrying stops the server, and waits until it has ended.
func (b *Box) stopCarrying() error {
	if b.carrier == nil {
		return nil
	}
	return b.carrier.Close()
}

// Connections implements Traffic.
func (b *Box) Connections() []sandbox.Connection {
	if b.carrier == nil {
		return nil
	}
	attempts := b.carrier.Connections()
	all := make([]sandbox.Connection, len(attempts))
	for i, a := range attempts {
		all[i] = sandbox.Connection(a)
	}
	return all
}
