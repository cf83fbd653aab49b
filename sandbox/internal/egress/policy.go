package egress

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"trajgen/sandbox/addresses"
)

// Policy is what a sandbox may reach.
type Policy struct {
	// Full allows all public addresses; otherwise Allow lists what is allowed.
	Full  bool
	Allow []Rule
}

// Rule allows a name or a range of addresses.
type Rule struct {
	name   string // lower case; begins with a dot to match all names below it
	prefix netip.Prefix
	port   uint16 // 0 is 80 and 443
}

// Ports returns the ports that the rule allows.
func (r Rule) Ports() []uint16 {
	if r.port != 0 {
		return []uint16{r.port}
	}
	return []uint16{80, 443}
}

func (r Rule) matches(name string) bool {
	if strings.HasPrefix(r.name, ".") {
		return strings.HasSuffix(name, r.name) && len(name) > len(r.name)
	}
	return r.name != "" && r.name == name
}

// Parse reads targets as users write them: "example.org", "*.example.org" for all names below it, an address or a CIDR range,
// each with or without ":PORT". The error names everything that is wrong.
func Parse(targets []string) ([]Rule, error) {
	rules := make([]Rule, 0, len(targets))
	var errs []error
	for _, target := range targets {
		rule, err := parse(target)
		if err != nil {
			errs = append(errs, fmt.Errorf("allow %q: %w", target, err))
		}
		rules = append(rules, rule)
	}
	return rules, errors.Join(errs...)
}

var namePattern = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

func parse(target string) (rule Rule, err error) {
	if scheme, rest, ok := strings.Cut(target, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		return rule, fmt.Errorf("is a URL: leave out %q and any path, as in %q", scheme+"://", host)
	}
	host, port, err := cutPort(target)
	if err != nil {
		return rule, err
	}
	rule.port = port
	if addr, err := netip.ParseAddr(host); err == nil {
		rule.prefix = netip.PrefixFrom(addr.Unmap().WithZone(""), addr.Unmap().BitLen())
		return rule, checkRange(rule.prefix)
	}
	if strings.Contains(host, "/") {
		prefix, err := netip.ParsePrefix(host)
		switch {
		case err != nil:
			return rule, errors.New("is not a range of addresses, such as 192.0.43.0/24 (names are written without a path)")
		case prefix.Addr().Is4In6():
			return rule, errors.New("is a range of addresses in the other notation: write it as one of IPv4")
		}
		rule.prefix = prefix.Masked()
		return rule, checkRange(rule.prefix)
	}
	name, all := strings.CutPrefix(strings.ToLower(strings.TrimSuffix(host, ".")), "*.")
	switch {
	case host == "*":
		return rule, errors.New("allows everything: that is network full")
	case !isName(name):
		return rule, errors.New("is not a name (as example.org or *.example.org, in ASCII), no address and no CIDR range, with or without :PORT")
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return rule, errors.New("is the sandbox itself, which needs no permission")
	}
	rule.name = name
	if all {
		rule.name = "." + name
	}
	return rule, nil
}

// isName reports whether a text can be a name on the internet.
func isName(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return len(name) <= 253 && namePattern.MatchString(name) && strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' })
}

// cutPort splits off the port. An IPv6 address with a port needs brackets.
func cutPort(target string) (host string, port uint16, err error) {
	host = target
	if rest, ok := strings.CutPrefix(target, "["); ok {
		inner, after, ok := strings.Cut(rest, "]")
		if !ok {
			return "", 0, errors.New(`lacks a "]"`)
		}
		if after == "" {
			return inner, 0, nil
		}
		host = inner + after
		target = after
	}
	colon := strings.LastIndexByte(target, ':')
	if colon < 0 || strings.Count(target, ":") > 1 {
		return host, 0, nil
	}
	text := target[colon+1:]
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("%q is not a port from 1 to 65535", text)
	}
	return strings.TrimSuffix(host, ":"+text), uint16(n), nil
}

// checkRange refuses ranges that are never reached, whatever the rules say. Private addresses are reached when a range of
// private addresses names them.
func checkRange(prefix netip.Prefix) error {
	class, special := addresses.Of(prefix.Addr())
	if special && class.Kind != addresses.Private && class.Prefix.Bits() <= prefix.Bits() {
		return fmt.Errorf("is never reached: %s", class.What)
	}
	return nil
}

// knows reports whether a name is allowed on any port.
func (p Policy) knows(name string) bool {
	return p.Full || slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.matches(name) })
}

// name returns why a name is not allowed on a port, or "".
func (p Policy) name(name string, port uint16) string {
	if p.Full {
		return ""
	}
	for _, r := range p.Allow {
		if r.matches(name) && slices.Contains(r.Ports(), port) {
			return ""
		}
	}
	if p.knows(name) {
		return fmt.Sprintf("port %d of it is not in the allow list", port)
	}
	return "it is not in the allow list"
}

// Check returns why a program of the runner may not connect to an address, for a name or an address that a sandbox was given, or "".
// Without an address it judges the name, which is not looked up then: whoever asks for it would learn of it.
func (p Policy) Check(host string, addr netip.Addr, port uint16) string {
	if at, err := netip.ParseAddr(host); err == nil {
		return p.address(cmp.Or(addr, at), port, true)
	}
	if refused := p.name(strings.ToLower(host), port); refused != "" || !addr.IsValid() {
		return refused
	}
	return p.address(addr, port, false)
}

// address returns why an address is not allowed, or "". direct means that the sandbox used the address and no name.
func (p Policy) address(addr netip.Addr, port uint16, direct bool) string {
	named := slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.holds(addr) && slices.Contains(r.Ports(), port) })
	if class, special := addresses.Of(addr); special {
		inside := slices.ContainsFunc(p.Allow, func(r Rule) bool {
			return r.holds(addr) && slices.Contains(r.Ports(), port) && class.Prefix.Bits() <= r.prefix.Bits()
		})
		if class.Kind != addresses.Private || !inside {
			return class.What
		}
	}
	if direct && !p.Full && !named {
		return "it is not in the allow list"
	}
	return ""
}

func (r Rule) holds(addr netip.Addr) bool {
	return r.prefix.IsValid() && r.prefix.Contains(addr.Unmap())
}
