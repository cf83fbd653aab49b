package addresses_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox/addresses"
)

func TestOf(t *testing.T) {
	for _, addr := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.255.254",
		"169.254.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.168.0.1", "198.18.0.1",
		"198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"168.63.129.16", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "::10.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:db8::1",
		"2002:7f00:1::", "2002:a00:1::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0",
		"fec0::1", "ff02::1", "4000::1", "::ffff:0:127.0.0.1",
	} {
		if class, special := addresses.Of(netip.MustParseAddr(addr)); !special || class.What == "" || !class.Prefix.IsValid() {
			t.Errorf("Of(%s) = %+v, %v, want a class", addr, class, special)
		}
	}
	for _, addr := range []string{
		"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8",
	} {
		if class, special := addresses.Of(netip.MustParseAddr(addr)); special {
			t.Errorf("Of(%s) = %+v, want none", addr, class)
		}
	}
}

func TestKind(t *testing.T) {
	for _, tt := range []struct {
		addr string
		kind addresses.Kind
		what string
	}{
		{"10.1.2.3", addresses.Private, "private"}, {"100.100.100.201", addresses.Private, "private"},
		{"fd12::1", addresses.Private, "private"},
		{"127.0.0.53", addresses.Loopback, "loopback"}, {"::1", addresses.Loopback, "loopback"},
		{"64:ff9b::7f00:1", addresses.Loopback, "loopback"},
		// Metadata services are a class of their own within private and link-local ranges.
		{"169.254.169.254", addresses.Never, "metadata"}, {"169.254.169.253", addresses.Never, "metadata"},
		{"169.254.170.2", addresses.Never, "metadata"}, {"100.100.100.200", addresses.Never, "metadata"},
		{"fd00:ec2::254", addresses.Never, "metadata"}, {"168.63.129.16", addresses.Never, "metadata"},
		{"::ffff:169.254.169.254", addresses.Never, "metadata"}, {"0.0.0.0", addresses.Never, "not an address"},
		{"169.254.1.1", addresses.Never, "link-local"},
	} {
		class, _ := addresses.Of(netip.MustParseAddr(tt.addr))
		if class.Kind != tt.kind || !strings.Contains(class.What, tt.what) {
			t.Errorf("Of(%s) = %+v, want kind %d, %q", tt.addr, class, tt.kind, tt.what)
		}
	}
}

func TestOwn(t *testing.T) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	for _, each := range interfaces {
		addr := netip.MustParsePrefix(each.String()).Addr()
		if own, err := addresses.Own(addr, now); !own || err != nil {
			t.Errorf("Own(%s) = %v, %v", addr, own, err)
		}
		if own, err := addresses.Own(netip.AddrFrom16(addr.As16()), now); !own || err != nil {
			t.Errorf("Own(%s) in the other notation = %v, %v", addr, own, err)
		}
	}
	if own, err := addresses.Own(netip.MustParseAddr("192.0.2.7"), now.Add(time.Hour)); own || err != nil {
		t.Errorf("Own(192.0.2.7) = %v, %v", own, err)
	}
}
