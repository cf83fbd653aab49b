package egress

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// class is a range of addresses outside of the public internet.
type class struct {
	prefix netip.Prefix
	what   string
	named  bool // a rule that names it can allow it
}

// classes are searched from the top: metadata services come before the ranges that contain them.
var classes = []class{
	{netip.MustParsePrefix("169.254.169.254/32"), "it is a metadata service", false},
	{netip.MustParsePrefix("169.254.170.2/32"), "it is a metadata service", false},
	{netip.MustParsePrefix("100.100.100.200/32"), "it is a metadata service", false},
	{netip.MustParsePrefix("168.63.129.16/32"), "it is a metadata service", false},
	{netip.MustParsePrefix("192.0.0.192/32"), "it is a metadata service", false},
	{netip.MustParsePrefix("fd00:ec2::/32"), "it is a metadata service", false},
	{netip.MustParsePrefix("fd20:ce::254/128"), "it is a metadata service", false},
	{netip.MustParsePrefix("0.0.0.0/8"), "it is not an address of a machine", false},
	{netip.MustParsePrefix("10.0.0.0/8"), "it is a private address", true},
	{netip.MustParsePrefix("100.64.0.0/10"), "it is a private address of a provider", true},
	{netip.MustParsePrefix("127.0.0.0/8"), "it is a loopback address", false},
	{netip.MustParsePrefix("169.254.0.0/16"), "it is a link-local address", false},
	{netip.MustParsePrefix("172.16.0.0/12"), "it is a private address", true},
	{netip.MustParsePrefix("192.0.0.0/24"), "it is a reserved address", false},
	{netip.MustParsePrefix("192.0.2.0/24"), "it is an address for documentation", false},
	{netip.MustParsePrefix("192.88.99.0/24"), "it is a reserved address", false},
	{netip.MustParsePrefix("192.168.0.0/16"), "it is a private address", true},
	{netip.MustParsePrefix("198.18.0.0/15"), "it is an address for tests", false},
	{netip.MustParsePrefix("198.51.100.0/24"), "it is an address for documentation", false},
	{netip.MustParsePrefix("203.0.113.0/24"), "it is an address for documentation", false},
	{netip.MustParsePrefix("224.0.0.0/4"), "it is a multicast address", false},
	{netip.MustParsePrefix("240.0.0.0/4"), "it is a reserved address", false},
	{netip.MustParsePrefix("::1/128"), "it is a loopback address", false},
	{netip.MustParsePrefix("::/128"), "it is not an address of a machine", false},
	{netip.MustParsePrefix("fc00::/7"), "it is a private address", true},
	{netip.MustParsePrefix("fe80::/10"), "it is a link-local address", false},
	{netip.MustParsePrefix("ff00::/8"), "it is a multicast address", false},
	// An IPv6 address with an IPv4 address inside leads there by ways that we cannot check.
	{netip.MustParsePrefix("2001::/23"), "it is a reserved address", false},
	{netip.MustParsePrefix("2002::/16"), "it holds another address", false},
	{netip.MustParsePrefix("2001:db8::/32"), "it is an address for documentation", false},
	{netip.MustParsePrefix("3fff::/20"), "it is an address for documentation", false},
}

var (
	// publicSix is all of IPv6 that was ever assigned.
	publicSix   = netip.MustParsePrefix("2000::/3")
	reservedSix = class{netip.MustParsePrefix("::/0"), "it is a reserved address", false}
	// translated IPv6 addresses contain the IPv4 address that they lead to; name servers of IPv6-only networks answer with
	// them.
	translated = netip.MustParsePrefix("64:ff9b::/96")
)

// classOf returns nil for a public address.
func classOf(addr netip.Addr) *class {
	addr = addr.Unmap().WithZone("")
	if translated.Contains(addr) {
		bytes := addr.As16()
		return classOf(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	for i := range classes {
		if classes[i].prefix.Contains(addr) {
			return &classes[i]
		}
	}
	if addr.Is6() && !publicSix.Contains(addr) {
		return &reservedSix
	}
	return nil
}

// ownAddresses are those of this machine, also public ones: servers on them belong to the machine's own network.
var ownAddresses struct {
	sync.Mutex
	asked time.Time
	known map[netip.Addr]bool
}

// isOwn reports whether an address is one of this machine's. The list is a few seconds old at most.
func isOwn(addr netip.Addr, now time.Time) (bool, error) {
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
