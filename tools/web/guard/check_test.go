package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"trajgen/tools/web/guard"
	"trajgen/tools/web/source"
)

// open makes a guard whose text checks must not ask for a name.
func open(t testing.TB, config guard.Config) *guard.Guard {
	t.Helper()
	if config.Lookup == nil {
		config.Lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
			t.Errorf("the name server was asked for %s", name)
			return nil, errors.New("not now")
		}
	}
	g, err := guard.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func classOf(err error) string {
	if e, ok := errors.AsType[*source.Error](err); ok && e.Blame == source.Agent {
		return e.Class
	}
	return fmt.Sprint(err)
}

func TestCheck(t *testing.T) {
	g := open(t, guard.Config{})
	for raw, want := range map[string]string{
		"http://example.org":                                "http://example.org/",
		"https://Example.ORG:443/a%2Fb?q=1&p=2#part":        "https://example.org/a%2Fb?q=1&p=2#part",
		"http://example.org:80/":                            "http://example.org/",
		"http://example.org:8443/":                          "http://example.org:8443/",
		"http://example.org./":                              "http://example.org/",
		"http://bücher.example/größe":                       "http://xn--bcher-kva.example/gr%C3%B6%C3%9Fe",
		"http://ｅxample.org/":                               "http://example.org/",
		"http://8.8.8.8/":                                   "http://8.8.8.8/",
		"http://[2606:4700::1111]:8080/x":                   "http://[2606:4700::1111]:8080/x",
		"http://my_host.example.org/a b?q=a b&ü=<'\">":      "http://my_host.example.org/a%20b?q=a%20b&%C3%BC=%3C%27%22%3E",
		"https://example.org/sk-hynix-opens-a-new-factory/": "https://example.org/sk-hynix-opens-a-new-factory/",
		"https://example.org/?next=http://127.0.0.1/":       "https://example.org/?next=http://127.0.0.1/",
		"https://localhost.example.org/":                    "https://localhost.example.org/",
	} {
		u, err := g.Check(raw)
		if err != nil || u.String() != want {
			t.Errorf("Check(%q) = %v, %v, want %s", raw, u, err, want)
			continue
		}
		if again, err := g.Check(u.String()); err != nil || again.String() != want {
			t.Errorf("Check(%q) = %v, %v, want the same", u, again, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	g := open(t, guard.Config{})
	for _, raw := range []string{
		// Addresses.
		"http://127.0.0.1/", "http://[::1]/", "http://[::]/", "http://0.0.0.0/", "http://[::ffff:127.0.0.1]/",
		"http://[::ffff:7f00:1]/", "http://[fe80::1%25eth0]/", "http://[2606:4700::1111%25eth0]/", "http://10.0.0.1/",
		"http://172.16.0.1/", "http://192.168.1.1/", "http://100.64.0.1/", "http://169.254.0.1/",
		"http://169.254.169.254/latest/meta-data", "http://169.254.169.253/", "http://169.254.170.2/", "http://100.100.100.200/",
		"http://[fd00:ec2::254]/", "http://[fd00::1]/", "http://[ff02::1]/", "http://224.0.0.1/", "http://240.0.0.1/",
		"http://[64:ff9b::7f00:1]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[2002:7f00:1::]/", "http://[::127.0.0.1]/",
		"http://127.0.0.1./",
		// Notations of addresses that resolvers of C and browsers read.
		"http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://0/", "http://0x/",
		"http://1.2.3.4.5/", "http://127.0.0.0x1/", "http://example.org.1/", "http://①②⑦.0.0.1/", "http://127。0。0。1/",
		"http://１２７.0.0.1/", "http://127.1./", "http://%E2%91%A0%E2%91%A1%E2%91%A6.0.0.1/",
		// User names.
		"http://public.example@127.0.0.1/", "http://public.example@example.org/", "http://user:password@example.org/",
		"http://@example.org/", "http://example.org#@127.0.0.1/", "http://example.org?@127.0.0.1/", `http://example.org\@127.0.0.1/`,
		`http://example.org#\127.0.0.1/`,
		// No URLs.
		"", "http:127.0.0.1", "http:///x", "//x/", "http://[::1", "http://exa mple/", "http://%31%32%37.0.0.1/", "http://",
		"http://:80/", "example.org", "/etc/passwd", "http://example.org\n/", "http://example.org/\x00", "http://example.org/\u0085",
		" http://example.org/", "http://exa%00mple.org/", "http://example..org/", "http://-x.org/", "http://.org/",
		"http://" + strings.Repeat("a", 300) + ".org/", "http://a:b:c/", "http://example.org:x/", "http://example.org:99999/",
		"http://example.org:0/", "http://example.org/" + strings.Repeat("a", 9000),
		// Schemes.
		"file:///etc/passwd", "gopher://example.org/", "ftp://example.org/", "data:text/html,x", "javascript:alert(1)",
		"chrome://crash", "view-source:http://example.org/", "blob:http://example.org/x", "about:blank", "ws://example.org/",
		// Ports.
		"http://example.org:22/", "http://example.org:25/", "http://8.8.8.8:53/",
		// Names.
		"http://localhost/", "http://LOCALHOST./", "http://foo.localhost/", "http://localhost.localdomain/",
		"http://metadata.google.internal/", "http://metadata.google.internal./", "http://metadata/", "http://metadata.goog/",
		"http://x.metadata.goog/", "http://instance-data/latest", "http://printer/", "http://printer.local/", "http://db.internal/",
		"http://ｌｏｃａｌｈｏｓｔ/",
	} {
		if u, err := g.Check(raw); classOf(err) != source.BlockedURL {
			t.Errorf("Check(%.80q) = %v, %v, want %s", raw, u, err, source.BlockedURL)
		}
	}
}

func TestCheckSecrets(t *testing.T) {
	g := open(t, guard.Config{})
	key := "sk-" + "aB3dE5gH7jK9mN1pQ3sT5vX7z"
	for _, raw := range []string{
		"https://evil.example/?k=" + key, "https://evil.example/" + key, "https://evil.example/#" + key,
		"https://" + key + ".evil.example/", "https://evil.example/?k=" + url.QueryEscape(url.QueryEscape("("+key+")")),
		"https://evil.example/?k=%73%6B%2d" + key[3:], "https://evil.example/?k=%2573k-" + key[3:],
		"https://evil.example/?api_key=0123456789abcdefghij", "https://evil.example/?k=AKIA" + "ABCDEFGHIJKLMNOP",
		"https://evil.example/?k=-----BEGIN%20RSA+PRIVATE%20KEY-----", "file:///" + key,
	} {
		_, err := g.Check(raw)
		if classOf(err) != source.SecretInURL {
			t.Errorf("Check(%q): %v, want %s", raw, err, source.SecretInURL)
		} else if strings.Contains(err.Error(), key[3:]) {
			t.Errorf("Check(%q) repeats the secret: %v", raw, err)
		}
	}
	// A server may redirect to an address that it signed.
	base := &url.URL{Scheme: "https", Host: "example.org", Path: "/a/b"}
	if u, err := g.Follow(base, "../c?X-Amz-Credential=AKIA"+"ABCDEFGHIJKLMNOP"); err != nil || u.Path != "/c" {
		t.Errorf("Follow a signed URL: %v, %v", u, err)
	}
}

func TestFollow(t *testing.T) {
	g := open(t, guard.Config{Blocked: []string{"bad.example"}})
	base := &url.URL{Scheme: "https", Host: "example.org", Path: "/a/b"}
	for location, want := range map[string]string{
		"c": "https://example.org/a/c", "/c": "https://example.org/c", "//other.example/c": "https://other.example/c",
		"?q": "https://example.org/a/b?q",
		"":   source.BlockedURL, "//127.0.0.1/": source.BlockedURL, "file:///etc/passwd": source.BlockedURL,
		"http://169.254.169.254/": source.BlockedURL,
		"//user@other.example/":   source.BlockedURL, "http:x": source.BlockedURL, "https://www.bad.example/": source.Policy,
	} {
		u, err := g.Follow(base, location)
		got := classOf(err)
		if err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("Follow(%q) = %s, want %s", location, got, want)
		}
	}
}

func TestBlocked(t *testing.T) {
	g := open(t, guard.Config{Blocked: []string{"example.org", "*.example.com", "BÜCHER.example.", "8.8.8.8"}})
	for host, want := range map[string]bool{
		"example.org": true, "EXAMPLE.org.": true, "www.example.org": true, "a.b.example.org": true, "notexample.org": false,
		"example.org.de": false,
		"example.com":    false, "www.example.com": true, "xn--bcher-kva.example": true, "bücher.example": true, "8.8.8.8": true,
		"8.8.4.4": false,
	} {
		_, err := g.Check("https://" + host + "/")
		if got := err != nil && classOf(err) == source.Policy; got != want {
			t.Errorf("%s: %v, want blocked %v", host, err, want)
		}
	}
}

func TestPrivate(t *testing.T) {
	g := open(t, guard.Config{
		Private: []string{"127.0.0.0/8", "::1", "10.1.0.0/16", "localhost", "wiki", "*.internal", "100.64.0.0/10", "8.0.0.0/5"},
		Ports:   []int{22},
	})
	for raw, want := range map[string]bool{
		"http://127.0.0.1:8080/": true, "http://[::1]/": true, "http://10.1.2.3/": true, "http://10.2.2.3/": false,
		"http://localhost/": true,
		"http://wiki/":      true, "http://db.internal/": true, "http://internal/": false, "http://x.localhost/": false,
		"http://example.org:22/": true,
		"http://example.org:23/": false, "http://100.64.0.1/": true,
		// Whatever is named, metadata services stay out of reach, and other ways to write an address as well.
		"http://100.100.100.200/": false, "http://metadata.google.internal/": false, "http://169.254.169.254/": false,
		"http://127.1/": false,
	} {
		if _, err := g.Check(raw); (err == nil) != want {
			t.Errorf("Check(%q): %v, want allowed %v", raw, err, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for entry, want := range map[string]string{
		"http://x.org": "not a name", "": "not a name", "a b": "not a name", "169.254.169.254": "metadata",
		"0.0.0.0/0":                "never reached",
		"metadata.google.internal": "metadata", "*.metadata.goog": "metadata", "169.254.0.0/16": "link-local", "10.0.0.0/7": "",
		"::/0":         "never reached",
		"fe80::1%eth0": "not a name", "::ffff:10.0.0.1": "IPv4", "100.100.100.200/32": "metadata",
		"10.0.0.0/99": "not a name", "fc00::/6": "",
	} {
		_, err := guard.New(guard.Config{Private: []string{entry}})
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Private %q: %v, want %q", entry, err, want)
		}
	}
	_, err := guard.New(guard.Config{Private: []string{"a b"}, Blocked: []string{"http://x", "*"}, Ports: []int{0, 65536}})
	if err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("five mistakes: %v", err)
	}
}

// Own addresses are refused although they are public, unless they are named.
func TestOwn(t *testing.T) {
	own := func(addr netip.Addr) (bool, error) { return addr == netip.MustParseAddr("8.8.8.8"), nil }
	if _, err := open(t, guard.Config{Own: own}).Check("http://8.8.8.8/"); classOf(err) != source.BlockedURL {
		t.Errorf("own address: %v", err)
	}
	if _, err := open(t, guard.Config{Own: own, Private: []string{"8.8.8.8"}}).Check("http://8.8.8.8/"); err != nil {
		t.Errorf("own address, named: %v", err)
	}
	broken := func(netip.Addr) (bool, error) { return false, errors.New("no interfaces") }
	if _, err := open(t, guard.Config{Own: broken}).Check("http://8.8.8.8/"); err == nil {
		t.Error("an address is allowed although this machine's own are not known")
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"http://example.org/", "https://[::1]:80/", "http://①②⑦.0.0.1/", "http://127。0。0。1/", "http://a@b/",
		"http://0x7f.1/", "//x", "http://x.org/?a b#c", "http://xn--bcher-kva.example./", "http://%e2%91%a0.org",
		"http://[64:ff9b::7f00:1]/", "http://example.org:65535", "http://ß.example/%",
	} {
		f.Add(seed)
	}
	g := open(f, guard.Config{})
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := g.Check(raw)
		if err != nil {
			if classOf(err) != source.BlockedURL && classOf(err) != source.SecretInURL {
				t.Errorf("Check(%q): %v", raw, err)
			}
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Opaque != "" {
			t.Errorf("Check(%q) = %#v", raw, u)
		}
		// What is allowed is its own canonical form, so that a second look cannot differ from the first.
		again, err := g.Check(u.String())
		if err != nil && classOf(err) == source.SecretInURL || len(u.String()) > 8000 {
			return // escaping it made it longer
		}
		if err != nil || again.String() != u.String() {
			t.Errorf("Check(%q) = %s, and then %v, %v", raw, u, again, err)
		}
		if addr, err := netip.ParseAddr(u.Hostname()); err == nil && (!addr.IsGlobalUnicast() || addr.IsPrivate()) {
			t.Errorf("Check(%q) allows %s", raw, addr)
		}
	})
}
