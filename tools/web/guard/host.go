package guard

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/idna"
)

// patterns are names, and names with a leading dot for all names below them.
type patterns []string

func (p patterns) match(host string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool {
		return pattern == host || strings.HasPrefix(pattern, ".") && strings.HasSuffix(host, pattern)
	})
}

var (
	// metadata services answer to these names in the networks of providers.
	metadata = patterns{
		"metadata", "metadata.google.internal", "metadata.goog", ".metadata.goog", "instance-data", "instance-data.ec2.internal",
	}
	// local names are of this machine or its network, whatever a name server says.
	local = patterns{".localhost", ".localdomain", ".local", ".internal"}
)

// readPattern reads "example.org" or "*.example.org".
func readPattern(text string) (string, error) {
	text, below := strings.CutPrefix(text, "*.")
	host, _, err := readHost(text)
	if err != nil {
		return "", errors.New("is not a name, as in example.org or *.example.org")
	}
	if below {
		host = "." + host
	}
	return host, nil
}

var (
	namePattern = regexp.MustCompile(`^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	// A host that ends in a number is an IPv4 address for browsers and for the resolvers of C, in notations that hide which one.
	endsInNumber = regexp.MustCompile(`(^|\.)(\d+|0x[0-9a-f]*)$`)
)

// readHost returns a host as it is dialled, in lower case and ASCII, and its address where it is one.
func readHost(text string) (host string, addr netip.Addr, err error) {
	if strings.ContainsFunc(text, func(r rune) bool { return r > '~' }) {
		if text, err = idna.Lookup.ToASCII(text); err != nil {
			return "", addr, errors.New("its host is not a name")
		}
	}
	host = strings.ToLower(strings.TrimSuffix(text, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", addr, errors.New("its address has a zone")
		}
		return addr.String(), addr, nil
	}
	switch {
	case endsInNumber.MatchString(host):
		return "", addr, errors.New("its host is a number: write an IPv4 address as four decimal numbers")
	case len(host) > 253 || !namePattern.MatchString(host):
		return "", addr, errors.New("its host is not a name")
	}
	return host, addr, nil
}
