package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func question(name string, kind dnsmessage.Type) []byte {
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET},
	}}
	packed, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return packed
}

func TestNames(t *testing.T) {
	rules, _ := Parse([]string{"*.example.org", "slow.test"})
	var asked []string
	s := New(Config{Policy: Policy{Allow: rules}, Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
		asked = append(asked, name)
		switch name {
		case "none.example.org":
			return nil, &net.DNSError{IsNotFound: true}
		case "broken.example.org":
			return nil, errors.New("the server is broken")
		}
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}})
	defer s.Close()
	for _, tt := range []struct {
		name string
		kind dnsmessage.Type
		code dnsmessage.RCode
		want bool // an address of the range
	}{
		{"a.example.org.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, true},
		{"A.Example.ORG.", dnsmessage.TypeA, dnsmessage.RCodeSuccess, true},
		{"a.example.org.", dnsmessage.TypeAAAA, dnsmessage.RCodeSuccess, false},
		{"a.example.org.", dnsmessage.TypeTXT, dnsmessage.RCodeSuccess, false},
		{"none.example.org.", dnsmessage.TypeA, dnsmessage.RCodeNameError, false},
		{"none.example.org.", dnsmessage.TypeAAAA, dnsmessage.RCodeNameError, false},
		{"broken.example.org.", dnsmessage.TypeA, dnsmessage.RCodeServerFailure, false},
		{"other.example.", dnsmessage.TypeA, dnsmessage.RCodeNameError, false},
		{"example.org.", dnsmessage.TypeA, dnsmessage.RCodeNameError, false},
		{"1.0.0.127.in-addr.arpa.", dnsmessage.TypePTR, dnsmessage.RCodeNameError, false},
		{"c2VjcmV0.other.example.", dnsmessage.TypeTXT, dnsmessage.RCodeNameError, false},
	} {
		var m dnsmessage.Message
		if err := m.Unpack(s.answer(question(tt.name, tt.kind))); err != nil {
			t.Fatal(err)
		}
		if m.ID != 7 || !m.Response || m.RCode != tt.code || (len(m.Answers) == 1) != tt.want || m.Questions[0].Name.String() != tt.name {
			t.Errorf("%s %v: got %+v", tt.name, tt.kind, m)
		}
		if tt.want {
			if addr := netip.AddrFrom4(m.Answers[0].Body.(*dnsmessage.AResource).A); !standInRange.Contains(addr) || s.names.of(addr) != "a.example.org" {
				t.Errorf("%s: got %v, which is %q", tt.name, addr, s.names.of(addr))
			}
		}
	}
	if slices.Contains(asked, "other.example") || slices.ContainsFunc(asked, func(name string) bool { return strings.Contains(name, "c2V") }) {
		t.Errorf("names that may not be reached were asked for: %q", asked)
	}
	if got := s.Connections(); len(got) != 3 || got[0].Host != "other.example" || got[0].Port != 0 || got[0].Refused == "" {
		t.Errorf("listed: %+v", got)
	}
}

// TestManyNames asks for more names than there is room for.
func TestManyNames(t *testing.T) {
	s := New(Config{Policy: Policy{Full: true}, Lookup: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}})
	defer s.Close()
	given := map[netip.Addr]bool{}
	for i := range mostNames + 10 {
		addr, err := s.names.standIn(t.Context(), fmt.Sprintf("n%d.example.org", i))
		if (err == nil) != (i < mostNames) {
			t.Fatalf("name %d: %v", i, err)
		}
		if err == nil && (given[addr] || !standInRange.Contains(addr)) {
			t.Fatalf("name %d: %v is taken or no stand-in", i, addr)
		}
		given[addr] = true
	}
}

// FuzzAnswer feeds what a sandbox may send to its name server.
func FuzzAnswer(f *testing.F) {
	f.Add(question("a.example.org.", dnsmessage.TypeA))
	f.Add(question("x.", dnsmessage.TypeALL))
	f.Add([]byte{0, 1, 2})
	rules, _ := Parse([]string{"*.example.org"})
	s := New(Config{Policy: Policy{Allow: rules}, Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
		if !strings.HasSuffix(name, ".example.org") {
			panic("asked for " + name)
		}
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}})
	f.Fuzz(func(t *testing.T, message []byte) {
		answer := s.answer(message)
		var m dnsmessage.Message
		if answer != nil && (m.Unpack(answer) != nil || !m.Response) {
			t.Errorf("%x: got %x", message, answer)
		}
	})
}
