//go:build linux

package native_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
)

func testAllowlist(t *testing.T, w *world, open opener) {
	t.Run("allowlist", func(t *testing.T) {
		n := open(t, sandbox.NetworkAllowlist, "example.org", "*.example.org", "echo.example:7", "93.184.216.128/25")
		tests := []struct {
			name string
			args []string
			want string // part of what curl prints
			code []int  // one of these
			why  string // part of the reason
		}{
			{name: "http", args: []string{"http://example.org/x"}, want: "at=93.184.216.34:80 for=example.org tls=false"},
			{name: "https", args: []string{"https://www.example.org/"}, want: "at=93.184.216.34:443 for=www.example.org tls=true"},
			{name: "https by http/1", args: []string{"--http1.1", "https://example.org/"}, want: "tls=true"},
			{name: "upload", args: []string{"-d", strings.Repeat("x", 100_000), "http://example.org/"}, want: "body=100000"},
			{name: "chunked upload", args: []string{"-H", "Transfer-Encoding: chunked", "-d", "abc", "http://example.org/"}, want: "body=3"},
			{name: "http/1.0", args: []string{"-0", "http://example.org/old"}, want: "path=/old"},
			{name: "two requests", args: []string{"http://example.org/1", "http://example.org/2"}, want: "path=/2"},
			{name: "agent", args: []string{"-A", "", "http://example.org/"}, want: `agent=""`},
			{name: "no upgrade", args: []string{"-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "http://example.org/"}, want: `upgrade=""`},
			{name: "address", args: []string{"-k", "https://93.184.216.200/"}, want: "at=93.184.216.200:443"},
			{name: "name over six", args: []string{"http://six.example.org/"}, want: "at=[2606:2800:220:1::1]:80"},
			{name: "good address among bad", args: []string{"http://mixed.example.org/"}, want: "at=93.184.216.34:80"},
			{name: "other name", args: []string{"http://other.example/"}, code: []int{6}, why: "not in the allow list"},
			{name: "no such name", args: []string{"http://nosuch.example.org/"}, code: []int{6}},
			{name: "other port", args: []string{"http://example.org:8080/"}, code: []int{7, 55, 56}, why: "port 8080 of it is not"},
			{name: "other address", args: []string{"http://93.184.216.34/"}, code: []int{7, 55, 56}, why: "not in the allow list"},
			{name: "other host header", args: []string{"-H", "Host: other.example", "http://example.org/"}, code: cut, why: `for "other.example"`},
			{name: "other name in TLS", args: []string{"--connect-to", "other.example:443:example.org:443", "https://other.example/"}, code: []int{7, 35}, why: `names "other.example"`},
			{name: "no name in TLS", args: []string{"-k", "--connect-to", "1.1.1.1:443:example.org:443", "https://1.1.1.1/"}, code: []int{7, 35}, why: "names no server"},
			{name: "no TLS where it must be", args: []string{"http://example.org:443/"}, code: cut, why: "does not begin TLS"},
			{name: "proxy", args: []string{"-p", "-x", "http://example.org:80", "https://other.example/"}, code: []int{56, 7, 52}, why: "proxy"},
			{name: "private", args: []string{"http://private.example.org/"}, code: cut, why: "10.0.0.5: it is a private"},
			{name: "mapped", args: []string{"http://mapped.example.org/"}, code: cut, why: "private"},
			{name: "nat64", args: []string{"http://nat64.example.org/"}, code: cut, why: "private"},
			{name: "metadata", args: []string{"http://metadata.example.org/"}, code: cut, why: "metadata"},
			{name: "loopback by name", args: []string{"http://loop.example.org/"}, code: cut, why: "loopback"},
			{name: "own address", args: []string{"http://own.example.org/"}, code: cut, why: "this machine"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				n := networked{t, n.Sandbox}
				begin := time.Now()
				out, code := n.curl(tt.args...)
				if tt.want != "" && (code != 0 || !strings.Contains(out, tt.want)) {
					t.Errorf("got exit %d, %q, want %q; %+v", code, out, tt.want, n.last())
				}
				if tt.want == "" && !slices.Contains(tt.code, code) {
					t.Errorf("got exit %d, %q, want one of %v; %+v", code, out, tt.code, n.last())
				}
				if tt.want == "" && time.Since(begin) > 30*time.Second { // what nobody answers takes minutes
					t.Errorf("it took %v", time.Since(begin))
				}
				if tt.why != "" && !strings.Contains(n.last().Refused, tt.why) {
					t.Errorf("reason: got %+v, want %q", n.last(), tt.why)
				}
			})
		}
		t.Run("listed", func(t *testing.T) {
			n := networked{t, n.Sandbox}
			n.curl("http://example.org/listed")
			c := n.last()
			if all := n.Sandbox.(sandbox.Traffic).Connections(); !slices.IsSortedFunc(all, func(a, b sandbox.Connection) int { return a.Started.Compare(b.Started) }) {
				t.Errorf("not in order: %+v", all)
			}
			if c.Host != "example.org" || c.Port != 80 || c.Address != "93.184.216.34:80" || c.Sent < 50 || c.Received < 50 || c.Refused+c.Failed != "" || c.Started.IsZero() {
				t.Errorf("got %+v", c)
			}
		})
		t.Run("second request", func(t *testing.T) {
			n := networked{t, n.Sandbox}
			request := "GET /%d HTTP/1.1\r\nHost: %s\r\n\r\n"
			out, _, code := n.run(sandbox.Command{Helper: "test-network", Args: []string{"say", "example.org:80", fmt.Sprintf(request+request, 1, "example.org", 2, "other.example")}})
			if strings.Contains(out, "path=/2") || code == 0 || !strings.Contains(n.last().Refused, "other.example") {
				t.Errorf("got %q, exit %d, %+v", out, code, n.last())
			}
		})
		t.Run("no server is asked for what is not allowed", func(t *testing.T) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.asked["other.example"] > 0 || w.asked["example.org"] == 0 {
				t.Errorf("asked: %v", w.asked)
			}
		})
	})
	t.Run("rebinding", func(t *testing.T) {
		n := open(t, sandbox.NetworkAllowlist, "rebind.example.org")
		if out, code := n.curl("http://rebind.example.org/"); code != 0 {
			t.Fatalf("got %q, exit %d", out, code)
		}
		w.set("rebind.example.org", "127.0.0.1")
		// Another sandbox remembers nothing of the first answer; this one still goes where it was before.
		if out, code := n.curl("http://rebind.example.org/"); code != 0 || !strings.Contains(out, "at="+elsewhere) {
			t.Errorf("got %q, exit %d", out, code)
		}
		n = open(t, sandbox.NetworkAllowlist, "rebind.example.org")
		if out, code := n.curl("http://rebind.example.org/"); code == 0 || !strings.Contains(n.last().Refused, "loopback") {
			t.Errorf("got %q, exit %d, %+v", out, code, n.last())
		}
	})
	t.Run("private by permission", func(t *testing.T) {
		n := open(t, sandbox.NetworkAllowlist, "mirror.example.org:8080", "10.7.0.0/16:8080")
		if out, code := n.curl("http://mirror.example.org:8080/"); code != 0 || !strings.Contains(out, "at=10.7.7.7:8080") {
			t.Errorf("got %q, exit %d, %+v", out, code, n.last())
		}
		if out, code := n.curl("http://10.7.1.1:8080/"); code != 0 || !strings.Contains(out, "at=10.7.1.1:8080") {
			t.Errorf("got %q, exit %d, %+v", out, code, n.last())
		}
		if out, code := n.curl("http://10.8.1.1:8080/"); code == 0 {
			t.Errorf("got %q", out)
		}
	})
}
