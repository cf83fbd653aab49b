package guard

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"trajgen/tools/internal/chars"
	"trajgen/tools/internal/secrets"
	"trajgen/tools/web/source"
)

// maxURL bounds a URL, in bytes.
const maxURL = 8 << 10

// Check judges a URL that an agent wrote, without a question to a name server. It returns the URL as it is to be asked for. An
// error is a *source.Error, unless this machine's addresses cannot be told.
func (g *Guard) Check(raw string) (*url.URL, error) {
	if holdsSecret(raw) {
		return nil, source.Errorf(source.Agent, source.SecretInURL,
			"the URL is refused: it holds what looks like a key or a password; ask for it without that")
	}
	return g.Follow(&url.URL{}, raw)
}

// Follow judges where a server at base redirects to. What looks like a secret there is that server's own.
func (g *Guard) Follow(base *url.URL, location string) (*url.URL, error) {
	u, err := parse(location)
	if err != nil {
		return nil, err
	}
	if base.Host != "" {
		u = base.ResolveReference(u)
	}
	host, err := g.reach(u)
	if err != nil {
		return nil, err
	}
	if g.blocked.match(host) {
		return nil, source.Errorf(source.Agent, source.Policy, "%s is refused: this run blocks the site %s", shown(location), host)
	}
	port := u.Port()
	u.Host = host
	if strings.Contains(host, ":") {
		u.Host = "[" + host + "]"
	}
	if port != "" && port != defaultPorts[u.Scheme] {
		u.Host += ":" + port
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.RawQuery = escape(u.RawQuery)
	return u, nil
}

// confusing URLs lead elsewhere than they look: before the first slash stands an @, perhaps behind a # that some programs
// overlook, or a backslash that some take for a slash.
var confusing = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/]*[@\\]`)

func parse(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, refuse(raw, "it is empty")
	}
	if len(raw) > maxURL {
		return nil, refuse(raw, "it is longer than %d bytes", maxURL)
	}
	if strings.ContainsFunc(raw, unicode.IsControl) {
		return nil, refuse(raw, "it has control characters")
	}
	if confusing.MatchString(raw) {
		return nil, refuse(raw, "it has a user name in front of its host, or what looks like one")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, refuse(raw, "it is not a URL")
	}
	return u, nil
}

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// reach judges what of a URL decides where a connection leads. It returns the host as it is dialled.
func (g *Guard) reach(u *url.URL) (string, error) {
	switch {
	case defaultPorts[u.Scheme] == "":
		return "", refuse(u.String(), "only http and https are allowed, with a whole URL as in https://example.org/page")
	case u.Opaque != "" || u.Hostname() == "":
		return "", refuse(u.String(), "it has no host")
	case u.User != nil: // of a URL that was put together elsewhere
		return "", refuse(u.Redacted(), "it has a user name in front of its host")
	}
	host, addr, err := readHost(u.Hostname())
	if err != nil {
		return "", refuse(u.String(), "%s", err)
	}
	if u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port < 1024 && port != 80 && port != 443 && !slices.Contains(g.config.Ports, int(port)) {
			return "", refuse(u.String(), "port %s is not allowed", chars.First(u.Port(), 20, "…"))
		}
	}
	return host, g.judgeHost(host, addr)
}

// judgeHost judges an address, or what a name says without a question to a name server.
func (g *Guard) judgeHost(host string, addr netip.Addr) error {
	switch {
	case addr.IsValid():
		return g.judge(host, addr)
	case metadata.match(host):
		return refuse(host, "it is a metadata service")
	case g.private.match(host):
		return nil
	case !strings.Contains(host, "."), local.match(host):
		return refuse(host, "it is a name of this machine or of its own network")
	}
	return nil
}

var escapes = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// holdsSecret looks at a text and what its escapes stand for, also when they are escaped themselves.
func holdsSecret(text string) bool {
	text = text[:min(len(text), maxURL)]
	for range 3 {
		if secrets.In(text) {
			return true
		}
		plain := escapes.ReplaceAllStringFunc(text, func(escape string) string {
			n, _ := strconv.ParseUint(escape[1:], 16, 8)
			return string([]byte{byte(n)})
		})
		if plain == text {
			return false
		}
		text = plain
	}
	return secrets.In(text)
}

// escape escapes what may not stand in a request, as browsers do; the url package leaves a query as it was written.
func escape(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c > '~' || strings.IndexByte("\"<>'", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// shown quotes a text that a stranger wrote, for a message.
func shown(text string) string { return strconv.Quote(chars.First(text, 200, "…")) }
