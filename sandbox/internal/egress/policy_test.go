package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, target := range []string{
		"example.org", "*.example.org", "EXAMPLE.org.", "example.org:8080", "a-b.example.org", "xn--bcher-kva.example", "mirror", "mirror:3000",
		"1.1.1.1", "1.1.1.1:53", "1.1.1.0/24", "1.1.1.0/24:8443", "2606:4700::1111", "[2606:4700::1111]:443", "[2606:4700::1111]", "2606:4700::/32",
		"[2606:4700::/32]:22", "10.0.0.0/8", "192.168.1.5:3128", "fd12::/16", "0.0.0.0/0",
	} {
		if _, err := Parse([]string{target}); err != nil {
			t.Errorf("Parse(%q): %v", target, err)
		}
	}
	for target, want := range map[string]string{
		"":                       "is not a name",
		"https://example.org/x":  `as in "example.org"`,
		"example.org/x":          "is not a range",
		"example.org:":           "is not a port",
		"example.org:0":          "is not a port",
		"example.org:65536":      "is not a port",
		"example.org:http":       "is not a port",
		"*":                      "network full",
		"*.*.org":                "is not a name",
		"exa mple.org":           "is not a name",
		"bücher.example":         "in ASCII",
		"1.2.3":                  "is not a name",
		"1.2.3.4.5":              "is not a name",
		"-x.org":                 "is not a name",
		"localhost":              "the sandbox itself",
		"[::1":                   `lacks a "]"`,
		"127.0.0.1":              "loopback",
		"127.0.0.0/8":            "loopback",
		"::1":                    "loopback",
		"169.254.169.254":        "metadata",
		"168.63.129.16":          "metadata",
		"169.254.0.0/16":         "link-local",
		"::ffff:169.254.169.254": "metadata",
		"64:ff9b::a9fe:a9fe":     "metadata",
		"198.18.5.5":             "for tests",
		"224.0.0.0/4":            "multicast",
		"2002:0a00:0001::1":      "holds another",
		"::ffff:10.0.0.0/104":    "other notation",
	} {
		if _, err := Parse([]string{target}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): got %v, want %q", target, err, want)
		}
	}
	if _, err := Parse([]string{"a b", "c d"}); strings.Count(err.Error(), "allow ") != 2 {
		t.Errorf("two mistakes: got %v", err)
	}
}

func TestPolicyName(t *testing.T) {
	rules, err := Parse([]string{"example.org", "*.example.org:8443", "db.example:5432"})
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Allow: rules}
	for _, tt := range []struct {
		name string
		port uint16
		want string
	}{
		{"example.org", 80, ""}, {"example.org", 443, ""}, {"example.org", 22, "port 22"}, {"a.example.org", 8443, ""}, {"a.b.example.org", 8443, ""},
		{"a.example.org", 443, "port 443"}, {"example.org", 8443, "port 8443"}, {"db.example", 5432, ""}, {"badexample.org", 443, "not in the allow list"},
		{"example.org.evil", 443, "not in the allow list"}, {"", 80, "not in the allow list"},
	} {
		if got := p.name(tt.name, tt.port); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("name(%q, %d) = %q, want %q", tt.name, tt.port, got, tt.want)
		}
	}
}

func TestPolicyAddress(t *testing.T) {
	rules, err := Parse([]string{"1.1.1.0/24", "10.1.0.0/16:8080", "0.0.0.0/0:22", "[::/0]:22"})
	if err != nil {
		t.Fatal(err)
	}
	allow, full := Policy{Allow: rules}, Policy{Full: true}
	for _, tt := range []struct {
		policy Policy
		addr   string
		port   uint16
		direct bool
		want   string
	}{
		{allow, "1.1.1.7", 443, true, ""}, {allow, "1.1.1.7", 25, true, "not in the allow list"}, {allow, "1.1.2.7", 443, true, "not in the allow list"},
		{allow, "1.1.2.7", 443, false, ""}, {allow, "10.1.2.3", 8080, true, ""}, {allow, "::ffff:10.1.2.3", 8080, false, ""}, {allow, "10.1.2.3", 8080, false, ""}, {allow, "10.1.2.3", 80, false, "private"},
		// All addresses are not private ones that somebody meant.
		{allow, "8.8.8.8", 22, true, ""}, {allow, "10.9.9.9", 22, true, "private"}, {allow, "169.254.169.254", 22, true, "metadata"}, {allow, "::1", 22, true, "loopback"},
		{full, "8.8.8.8", 25, true, ""}, {full, "2606:4700::1111", 443, true, ""}, {full, "64:ff9b::808:808", 443, true, ""},
	} {
		if got := tt.policy.address(netip.MustParseAddr(tt.addr), tt.port, tt.direct); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("address(%s, %d, %v) = %q, want %q", tt.addr, tt.port, tt.direct, got, tt.want)
		}
	}
	for _, addr := range []string{"10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "100.100.100.200", "64:ff9b::7f00:1", "192.0.2.1"} {
		if got := full.address(netip.MustParseAddr(addr), 443, true); got == "" {
			t.Errorf("%s would be reached", addr)
		}
	}
}

// FuzzParse feeds what people and files may give.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"example.org:80", "*.x", "[::1]:5", "10.0.0.0/8:1", "[", "]:", "::/0", "a:b:c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		rules, err := Parse([]string{target})
		if err != nil {
			return
		}
		// What is accepted allows something, and never the machine itself.
		if rules[0].name == "" && !rules[0].prefix.IsValid() {
			t.Errorf("Parse(%q) allows nothing: %+v", target, rules)
		}
		for _, port := range rules[0].Ports() {
			if (Policy{Allow: rules}).address(netip.MustParseAddr("127.0.0.1"), port, true) == "" {
				t.Errorf("Parse(%q) allows loopback", target)
			}
		}
	})
}
