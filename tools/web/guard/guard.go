// Package guard keeps the web tools on the public web: it judges the text of a URL, and each address before it is dialled.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"trajgen/sandbox/addresses"
	"trajgen/tools/web/source"
)

// Config configures a Guard. The zero value allows the public web.
type Config struct {
	// Private names what is allowed outside of the public web: "wiki.corp", "*.corp", "10.1.0.0/16", "127.0.0.1". A name allows
	// private and loopback addresses that it leads to. Metadata services are never allowed.
	Private []string
	// Blocked are sites that are refused: "example.org" with all names below it, "*.example.org" for those alone.
	Blocked []string
	// Ports are allowed besides 80, 443 and those above 1023.
	Ports []int

	// Lookup finds the addresses of a name. Nil uses this machine's resolver.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Own reports whether an address is this machine's. Nil asks the system.
	Own func(netip.Addr) (bool, error)
	Now func() time.Time // nil is time.Now
}

// Guard judges URLs and addresses. It is immutable, and all episodes share one.
type Guard struct {
	config  Config
	private patterns
	ranges  []netip.Prefix
	blocked patterns
}

// New reads a Config. The error names everything that is wrong.
func New(config Config) (*Guard, error) {
	if config.Lookup == nil {
		config.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".") // without this machine's search domains
		}
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Own == nil {
		config.Own = func(addr netip.Addr) (bool, error) { return addresses.Own(addr, config.Now()) }
	}
	g := &Guard{config: config}
	var errs []error
	for _, text := range config.Private {
		if err := g.allow(text); err != nil {
			errs = append(errs, fmt.Errorf("private %q: %w", text, err))
		}
	}
	for _, text := range config.Blocked {
		pattern, err := readPattern(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("blocked %q: %w", text, err))
			continue
		}
		if g.blocked = append(g.blocked, pattern); !strings.HasPrefix(pattern, ".") {
			g.blocked = append(g.blocked, "."+pattern)
		}
	}
	for _, port := range config.Ports {
		if port < 1 || port > 65535 {
			errs = append(errs, fmt.Errorf("port %d: want one from 1 to 65535", port))
		}
	}
	return g, errors.Join(errs...)
}

// allow adds an entry of Private.
func (g *Guard) allow(text string) error {
	prefix, err := netip.ParsePrefix(text)
	if addr, bad := netip.ParseAddr(text); bad == nil && addr.Zone() == "" {
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if err != nil {
		pattern, err := readPattern(text)
		if err == nil && metadata.match(strings.TrimPrefix(pattern, ".")) {
			err = errors.New("a metadata service is never reached")
		}
		g.private = append(g.private, pattern)
		return err
	}
	prefix = prefix.Masked()
	class, special := addresses.Of(prefix.Addr())
	switch {
	case prefix.Addr().Is4In6():
		return errors.New("write it as an IPv4 address")
	case special && (class.Kind == addresses.Never || prefix.Bits() < class.Prefix.Bits()):
		return fmt.Errorf("is never reached as a whole: %s", class.What)
	}
	g.ranges = append(g.ranges, prefix)
	return nil
}

// judge returns why an address is refused that host leads to.
func (g *Guard) judge(host string, addr netip.Addr) error {
	addr = addr.Unmap()
	class, special := addresses.Of(addr)
	if special && class.Kind == addresses.Never {
		return refuse(host, "%s", class.What)
	}
	own, err := g.config.Own(addr)
	if err != nil {
		return fmt.Errorf("ask for this machine's addresses: %w", err)
	}
	named := g.private.match(host) || slices.ContainsFunc(g.ranges, func(r netip.Prefix) bool {
		return r.Contains(addr.WithZone("")) && r.Bits() >= class.Prefix.Bits()
	})
	switch {
	case named:
		return nil
	case special:
		return refuse(host, "%s", class.What)
	case own:
		return refuse(host, "it is an address of this machine")
	}
	return nil
}

// refuse is the error for an address that is not reached. What was asked for is shown shortened and quoted.
func refuse(what, why string, args ...any) *source.Error {
	return source.Errorf(source.Agent, source.BlockedURL, "%s is refused: %s", shown(what), fmt.Sprintf(why, args...))
}
