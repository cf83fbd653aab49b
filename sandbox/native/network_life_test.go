//go:build linux

package native_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
)

func testLife(t *testing.T, w *world, open opener, openFrom forker) {
	t.Run("half-close", func(t *testing.T) {
		n := open(t, sandbox.NetworkAllowlist, "example.org:2000")
		if out := n.helper("half-close", "example.org:2000"); out != "5" {
			t.Errorf("got %q", out)
		}
	})
	t.Run("server that never answers", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		begin := time.Now()
		if _, code := n.curl("-m", "1", "http://example.org:9/"); code != 28 || time.Since(begin) > 20*time.Second {
			t.Errorf("got exit %d after %v", code, time.Since(begin))
		}
	})
	t.Run("big", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		out := n.helper("drain", "example.org:19")
		var bytes, micros int64
		if _, err := fmt.Sscan(out, &bytes, &micros); err != nil || bytes != big100 {
			t.Fatalf("got %q, %v", out, err)
		}
		t.Logf("figure: 100 MiB in %v, %d MiB/s", time.Duration(micros)*time.Microsecond, 100*1_000_000/micros)
		if c := n.last(); c.Received != big100 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("hundred at once", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		if out := n.helper("many", "example.org:7", "100"); out != "0" {
			t.Errorf("%s failed", out)
		}
		if out := n.helper("many", elsewhere+":7", "100"); out != "0" {
			t.Errorf("%s failed", out)
		}
	})
	t.Run("too many", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		out := n.helper("many", elsewhere+":7", "700")
		if out == "0" || len(n.Sandbox.(sandbox.Traffic).Connections()) != 700 {
			t.Errorf("%s failed, %+v", out, n.last())
		}
		// Others are not affected by that.
		if out := open(t, sandbox.NetworkFull).helper("many", elsewhere+":7", "10"); out != "0" {
			t.Errorf("%s failed", out)
		}
	})
	t.Run("latency", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		carried := n.helper("latency", elsewhere+":7")
		var direct bytes.Buffer
		if code := networkHelper([]string{"latency", elsewhere + ":7"}, nil, &direct, &direct); code != 0 {
			t.Fatal(direct.String())
		}
		t.Logf("figure: connect and one byte back: %s µs, outside of a sandbox %s µs", carried, strings.TrimSpace(direct.String()))
	})
	t.Run("flood", func(t *testing.T) {
		n := open(t, sandbox.NetworkAllowlist, "example.org")
		p, err := n.Start(t.Context(), sandbox.Command{Helper: "test-network", Args: []string{"flood", "10.0.0.1:80"}})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		other := open(t, sandbox.NetworkFull)
		for range 10 {
			if out, code := other.curl("http://example.org/"); code != 0 {
				t.Errorf("another sandbox: got %q, exit %d", out, code)
			}
		}
		time.Sleep(max(0, time.Second-time.Since(begin)))
		if err := p.Kill(t.Context(), 0); err != nil {
			t.Error(err)
		}
		got, seconds := len(n.Sandbox.(sandbox.Traffic).Connections()), time.Since(begin).Seconds()
		if most := 2000 + 500*(seconds+1); float64(got) > most || got < 500 {
			t.Errorf("%d connections were dealt with in %.1f s, want at most %.0f", got, seconds, most)
		}
	})
	t.Run("from the pool", func(t *testing.T) {
		backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir(), Pool: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := backend.Close(); err != nil {
				t.Error(err)
			}
		}()
		for i := range 5 {
			sb, err := backend.Open(t.Context(), sandbox.Spec{ID: fmt.Sprintf("pool-%d", i), Network: sandbox.NetworkAllowlist, Allow: []string{"example.org:8080"}})
			if err != nil {
				t.Fatal(err)
			}
			n := networked{t, sb}
			if out, _, code := n.run(sandbox.Command{Args: []string{"/usr/bin/curl", "-sS", "-m", "5", "http://example.org:8080/"}}); code != 0 || n.last().Refused+n.last().Failed != "" {
				t.Errorf("got %q, exit %d", out, code)
			}
			if i%2 == 0 {
				if err := sb.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	t.Run("end of the sandbox", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		p, err := n.Start(t.Context(), sandbox.Command{Helper: "test-network", Args: []string{"hold", elsewhere + ":9"}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for len(n.Sandbox.(sandbox.Traffic).Connections()) == 0 || n.last().Address == "" {
			if ctx.Err() != nil {
				t.Fatal("it did not connect")
			}
			time.Sleep(time.Millisecond)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		_, _ = p.Wait(ctx)
		for w.holding.Load() > 0 {
			if ctx.Err() != nil {
				t.Fatal("it is still connected")
			}
			time.Sleep(time.Millisecond)
		}
		if c := n.last(); c.Host != elsewhere || c.Refused+c.Failed != "" {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("snapshots", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		fetch := func(n networked) {
			n.Helper()
			if out, code := n.curl("http://example.org/"); code != 0 || !strings.Contains(out, "at="+elsewhere) {
				n.Errorf("got %q, exit %d", out, code)
			}
		}
		fetch(n)
		snapshot, err := n.Sandbox.(sandbox.Snapshotter).Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer snapshot.Close()
		fetch(n)
		if got := len(n.Sandbox.(sandbox.Traffic).Connections()); got != 2 {
			t.Errorf("%d connections are listed, want 2", got)
		}
		fetch(openFrom(t, snapshot, sandbox.NetworkFull))
		fetch(openFrom(t, snapshot, sandbox.NetworkAllowlist, "example.org"))
		alone := openFrom(t, snapshot, sandbox.NetworkLoopback)
		if out, code := alone.curl("http://example.org/"); code != 6 {
			t.Errorf("loopback: got %q, exit %d", out, code)
		}
		// A fork of a sandbox without a network may have one.
		sealed, err := alone.Sandbox.(sandbox.Snapshotter).Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer sealed.Close()
		fetch(openFrom(t, sealed, sandbox.NetworkFull))
	})
	t.Run("nothing of it can be changed", func(t *testing.T) {
		n := open(t, sandbox.NetworkAllowlist, "example.org")
		for what, script := range map[string]string{
			"address": "ip address add 10.0.0.1/8 dev lo", "route": "ip route del local 0.0.0.0/0 dev lo table local", "link": "ip link set lo down",
			"new link": "ip link add veth0 type veth", "name server": "echo nameserver 8.8.8.8 > /etc/resolv.conf",
			"rules":    `python3 -c 'import socket, struct; s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12); s.send(struct.pack("=IHHII", 20, (10 << 8) | 2, 5, 1, 0) + struct.pack("=BBH", 1, 0, 0)); r = s.recv(4096); e = struct.unpack("=i", r[16:20])[0]; assert e != -1'`,
			"listener": `python3 -c 'import socket; s = socket.socket(socket.AF_INET6); s.setsockopt(socket.SOL_SOCKET, 15, 1); s.setsockopt(socket.SOL_SOCKET, 2, 1); s.bind(("::", 65533)); s.listen()'`,
			"names":    `python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, 15, 1); s.setsockopt(socket.SOL_SOCKET, 2, 1); s.bind(("198.18.0.1", 53))'`,
			"raw":      "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'",
		} {
			if out, stderr, code := n.run(sandbox.Command{Args: []string{"/bin/sh", "-c", script}}); code == 0 {
				t.Errorf("%s: %q worked: %q, %q", what, script, out, stderr)
			}
		}
	})
	t.Run("sandboxes do not reach each other", func(t *testing.T) {
		a, b := open(t, sandbox.NetworkFull), open(t, sandbox.NetworkFull)
		p, err := a.Start(t.Context(), sandbox.Command{Args: []string{"/usr/bin/python3", "-m", "http.server", "8090"}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill(t.Context(), 0)
		for end := time.Now().Add(10 * time.Second); ; {
			// A sandbox has an address of its own, for itself.
			_, code := a.curl("http://198.18.0.2:8090/", "http://127.0.0.1:8090/")
			if code == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("its server: exit %d", code)
			}
		}
		for _, host := range []string{"127.0.0.1", "198.18.0.2", ownPublic, "[fd00:198:18::2]"} {
			if out, code := b.curl("http://" + host + ":8090/"); code == 0 {
				t.Errorf("%s: got %q", host, out)
			}
		}
	})
	t.Run("cost of opening", func(t *testing.T) {
		figures := map[sandbox.Network]time.Duration{}
		for _, network := range []sandbox.Network{sandbox.NetworkLoopback, sandbox.NetworkFull} {
			var times []time.Duration
			for range 15 {
				begin := time.Now()
				n := open(t, network)
				times = append(times, time.Since(begin))
				n.Close()
			}
			slices.Sort(times)
			figures[network] = times[len(times)/2]
		}
		t.Logf("figure: open with loopback %v, with full %v", figures[sandbox.NetworkLoopback], figures[sandbox.NetworkFull])
	})
}
