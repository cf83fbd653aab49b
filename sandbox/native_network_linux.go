package sandbox

import (
	"net"
	"os"
	"slices"

	"trajgen/sandbox/internal/egress"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// guestNetwork is what a guest has to make for a network.
func guestNetwork(n Network) int64 {
	switch n {
	case NetworkNone:
		return guest.NetworkNone
	case NetworkAllowlist, NetworkFull:
		return guest.NetworkCarried
	}
	return guest.NetworkLoopback
}

// likelyPorts are those that commands will want to reach, for guests that cannot catch all.
func likelyPorts(allow []string) []int64 {
	ports := []int64{80, 443}
	rules, _ := egress.Parse(allow) // complete has seen the error
	for _, rule := range rules {
		for _, port := range rule.Ports() {
			if p := int64(port); p != 53 && !slices.Contains(ports, p) {
				ports = append(ports, p)
			}
		}
	}
	return ports
}

// newCarrier returns what carries the connections of a sandbox, or nil.
func newCarrier(o owner, spec Spec) *egress.Server {
	if guestNetwork(spec.Network) != guest.NetworkCarried {
		return nil
	}
	rules, _ := egress.Parse(spec.Allow) // complete has seen the error
	config := egress.Config{Policy: egress.Policy{Full: spec.Network == NetworkFull, Allow: rules}, Logger: o.log()}
	return egress.New(config)
}

// carry takes the sockets that a guest made for its network.
func (b *box) carry(d *wire.Decoder, fds []int) {
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

// stopCarrying ends what is carried, and waits until it has ended.
func (b *box) stopCarrying() error {
	if b.carrier == nil {
		return nil
	}
	return b.carrier.Close()
}

// Connections returns what the sandbox tried to reach.
func (b *box) Connections() []Connection {
	if b.carrier == nil {
		return nil
	}
	attempts := b.carrier.Connections()
	all := make([]Connection, len(attempts))
	for i, a := range attempts {
		all[i] = Connection(a)
	}
	return all
}
