package egress

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestRequests feeds what could be understood one way here and another way by a server.
func TestRequests(t *testing.T) {
	rules, _ := Parse([]string{"example.org"})
	heard := make(chan []byte, 1)
	s := newSite(t, Config{Policy: Policy{Allow: rules}, Begin: time.Second}, func(c net.Conn) {
		got, _ := io.ReadAll(c)
		heard <- got
	})
	for _, tt := range []struct{ give, want string }{
		{"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"},
		{"GET http://example.org/a%2fb?c=%20 HTTP/1.1\r\nHost: other\r\nX: y\r\n\r\n", "GET /a%2fb?c=%20 HTTP/1.1\r\nHost: example.org\r\nX: y\r\n\r\n"},
		{"POST / HTTP/1.1\r\nHost: EXAMPLE.org:80\r\nContent-Length: 2\r\n\r\nhi", "POST / HTTP/1.1\r\nHost: EXAMPLE.org:80\r\nContent-Length: 2\r\n\r\nhi"},
		{"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"},
		{"GET / HTTP/1.1\r\nHost : other.example\r\nHost: example.org\r\n\r\n", "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"},
		{"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: keep-alive\r\n\r\n"},
	} {
		c := s.to("example.org", 80)
		_, _ = io.WriteString(c, tt.give)
		_ = c.CloseWrite()
		if got := <-heard; string(got) != tt.want {
			t.Errorf("%q: got %q, want %q", tt.give, got, tt.want)
		}
	}
	for _, give := range []string{
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.org\r\nHost: other.example\r\n\r\n",
		"GET http://other.example/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.org@other.example\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: other.example#example.org\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: xchunked\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET /" + strings.Repeat("x", mostHead) + " HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"\x16\x03\x01", "hello\r\n",
	} {
		c := s.to("example.org", 80)
		_, _ = io.WriteString(c, give)
		_ = c.CloseWrite()
		s.eventually("a refusal of "+give[:min(len(give), 60)], func() bool { return s.last().Refused != "" })
		c.Close()
	}
	select {
	case got := <-heard:
		t.Errorf("a server heard %q", got)
	default:
	}
}

// TestContinue has a client that waits for leave to send the body.
func TestContinue(t *testing.T) {
	rules, _ := Parse([]string{"example.org"})
	s := newSite(t, Config{Policy: Policy{Allow: rules}}, func(c net.Conn) {
		var head []byte
		for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
			b := make([]byte, 1)
			if _, err := c.Read(b); err != nil {
				return
			}
			head = append(head, b...)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		echo(c)
	})
	c := s.to("example.org", 80)
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: example.org\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
	leave := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
	if _, err := io.ReadFull(c, leave); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "body")
	_ = c.CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "body" {
		t.Errorf("got %q, %v", got, err)
	}
}
