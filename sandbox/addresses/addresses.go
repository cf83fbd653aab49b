// Package addresses knows the addresses outside of the public internet, and those of this machine.
package addresses

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Kind says what can be allowed of a class.
type Kind int

const (
	Never    Kind = iota // nothing: what only programs of a provider talk to, or no machine has
	Private              // what a rule names
	Loopback             // what a rule names, to a program of this machine; never to one in a sandbox
)

// Class is a range of addresses outside of the public internet.
type Class struct {
	Prefix netip.Prefix
	What   string // for a message, as in "it is a loopback address"
	Kind   Kind
}

// classes are searched from the top: metadata services come before the ranges that contain them.
var classes = []Class{
	{netip.MustParsePrefix("169.254.169.254/32"), "it is a metadata service", Never},
	{netip.MustParsePrefix("169.254.169.253/32"), "it is a metadata service", Never},
	{netip.MustParsePrefix("169.254.170.2/32"), "it is a metadata service", Never},
	{netip.MustParsePrefix("100.100.100.200/32"), "it is a metadata service", Never},
	{netip.MustParsePrefix("168.63.129.16/32"), "it is a metadata service", Never},
	{netip.MustParsePrefix("192.0.0.192/32"), "it is a metadata service", Never},
	{netip.MustParsePrefix("fd00:ec2::/32"), "it is a metadata service", Never},
	{netip.MustParsePrefix("fd20:ce::254/128"), "it is a metadata service", Never},
	{netip.MustParsePrefix("0.0.0.0/8"), "it is not an address of a machine", Never},
	{netip.MustParsePrefix("10.0.0.0/8"), "it is a private address", Private},
	{netip.MustParsePrefix("100.64.0.0/10"), "it is a private address of a provider", Private},
	{netip.MustParsePrefix("127.0.0.0/8"), "it is a loopback address", Loopback},
	{netip.MustParsePrefix("169.254.0.0/16"), "it is a link-local address", Never},
	{netip.MustParsePrefix("172.16.0.0/12"), "it is a private address", Private},
	{netip.MustParsePrefix("192.0.0.0/24"), "it is a reserved address", Never},
	{netip.MustParsePrefix("192.0.2.0/24"), "it is an address for documentation", Never},
	{netip.MustParsePrefix("192.88.99.0/24"), "it is a reserved address", Never},
	{netip.MustParsePrefix("192.168.0.0/16"), "it is a private address", Private},
	{netip.MustParsePrefix("198.18.0.0/15"), "it is an address for tests", Never},
	{netip.MustParsePrefix("198.51.100.0/24"), "it is an address for documentation", Never},
	{netip.MustParsePrefix("203.0.113.0/24"), "it is an address for documentation", Never},
	{netip.MustParsePrefix("224.0.0.0/4"), "it is a multicast address", Never},
	{netip.MustParsePrefix("240.0.0.0/4"), "it is a reserved address", Never},
	{netip.MustParsePrefix("::1/128"), "it is a loopback address", Loopback},
	{netip.MustParsePrefix("::/128"), "it is not an address of a machine", Never},
	{netip.MustParsePrefix("fc00::/7"), "it is a private address", Private},
	{netip.MustParsePrefix("fe80::/10"), "it is a link-local address", Never},
	{netip.MustParsePrefix("ff00::/8"), "it is a multicast address", Never},
	// An IPv6 address with an IPv4 address inside leads there by ways that we cannot check.
	{netip.MustParsePrefix("2001::/23"), "it is a reserved address", Never},
	{netip.MustParsePrefix("2002::/16"), "it holds another address", Never},
	{netip.MustParsePrefix("2001:db8::/32"), "it is an address for documentation", Never},
	{netip.MustParsePrefix("3fff::/20"), "it is an address for documentation", Never},
}

var (
	// publicSix is all of IPv6 that was ever assigned.
	publicSix   = netip.MustParsePrefix("2000::/3")
	reservedSix = Class{netip.MustParsePrefix("::/0"), "it is a reserved address", Never}
	// translated IPv6 addresses contain the IPv4 address that they lead to; name servers of IPv6-only networks answer with
	// them.
	translated = netip.MustParsePrefix("64:ff9b::/96")
)

// Of returns the class of an address; there is none for a public one.
func Of(addr netip.Addr) (Class, bool) {
	addr = addr.Unmap().WithZone("")
	if translated.Contains(addr) {
		bytes := addr.As16()
		return Of(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	for _, class := range classes {
		if class.Prefix.Contains(addr) {
			return class, true
		}
	}
	if addr.Is6() && !publicSix.Contains(addr) {
		return reservedSix, true
	}
	return Class{}, false
}

// ownAddresses are those of this machine, also public ones: servers on them belong to the machine's own network.
var ownAddresses struct {
	sync.Mutex
	asked time.Time
	known map[netip.Addr]bool
}

// Own reports whether an address is one of this machine's. The list is a few seconds old at most.
func Own(addr netip.Addr, now time.Time) (bool, error) {
	own := &ownAddresses
	own.Lock()
	defer own.Unlock()
	if own.known == nil || now.Sub(own.asked) > 5*time.Second {
		all, err := net.InterfaceAddrs()
		if err != nil {
			return false, err
		}
		own.known, own.asked = map[netip.Addr]bool{}, now
		for _, a := range all {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				own.known[prefix.Addr().Unmap().WithZone("")] = true
			}
		}
	}
	return own.known[addr.Unmap().WithZone("")], nil
}
