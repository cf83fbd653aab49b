//go:build linux

package native_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// insideWorld is set in the process that TestNetwork starts in a world of its own, to one of these.
const (
	insideWorld  = "SANDBOX_TEST_WORLD"
	withRules    = "with rules"
	withoutRules = "without rules" // as on a kernel that has no firewall
)

// worldName is the name under which this test starts itself to enter a world.
const worldName = "sandbox-test-world"

func init() {
	sandboxtest.Role(worldName, func(args []string) error {
		if err := enterWorld(); err != nil {
			return err
		}
		if os.Getenv(insideWorld) == withoutRules {
			// The filter is this thread's, and what it executes inherits it.
			runtime.LockOSThread()
			if err := forbidRules(); err != nil {
				return err
			}
		}
		return syscall.Exec(args[0], args, os.Environ())
	})
	sandbox.RegisterHelper("test-network", networkHelper)
}

// TestNetwork runs tests in a world of their own, as root and as an ordinary user, and as on another kernel.
func TestNetwork(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes a network of its own, as root")
	}
	for _, program := range []string{"ip", "curl", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			sandboxtest.Require(t, "native", err)
		}
	}
	for _, tt := range []struct{ name, id, test, world string }{
		{"root", "0", "TestNetworkInside", withRules},
		{"ordinary user", "65534", "TestNetworkInside", withRules},
		{"without rules", "0", "TestNetworkPorts", withoutRules},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, program := sandboxtest.Copy(t)
			c := sandboxtest.Again(worldName, setpriv(t), "--reuid="+tt.id, "--regid="+tt.id, "--clear-groups", program,
				"-test.run=^"+tt.test+"$", "-test.v", "-test.count=1", "-test.timeout=4m")
			c.Dir = "/"
			c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "GOCOVERDIR=", insideWorld+"="+tt.world)
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if !strings.Contains(string(out), "--- PASS: "+tt.test) {
				t.Errorf("it was not run:\n%s", out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "figure:") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

func setpriv(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNetworkInside is run by TestNetwork.
func TestNetworkInside(t *testing.T) {
	w, backend, open, openFrom := inside(t, withRules)
	g := backend.Guarantees()
	if !slices.Contains(g.Network, sandbox.NetworkFull) || !slices.Contains(g.Network, sandbox.NetworkAllowlist) {
		t.Fatalf("guarantees: %+v", g)
	}
	for _, m := range g.Missing {
		if strings.Contains(m, "network") {
			t.Errorf("missing: %s", m)
		}
	}
	testAllowlist(t, w, open)
	testFull(t, w, open)
	testLife(t, w, open, openFrom)
}

// TestNetworkPorts is run by TestNetwork where no firewall leads all connections to one listener.
func TestNetworkPorts(t *testing.T) {
	_, backend, open, _ := inside(t, withoutRules)
	if g := backend.Guarantees(); !slices.ContainsFunc(g.Missing, func(m string) bool { return strings.Contains(m, "nft_tproxy") && strings.Contains(m, "80, 443") }) {
		t.Errorf("guarantees: %+v", g)
	}
	n := open(t, sandbox.NetworkAllowlist, "example.org", "example.org:8080", elsewhere+":2000")
	for url, want := range map[string]string{
		"http://example.org/": "at=93.184.216.34:80", "https://example.org/": "tls=true", "http://example.org:8080/": "at=93.184.216.34:8080",
		"http://other.example/": "", "http://example.org:8443/": "", "http://" + other + "/": "", "http://169.254.169.254/": "",
	} {
		begin := time.Now()
		out, code := n.curl(url)
		if (code == 0) != (want != "") || !strings.Contains(out, want) || time.Since(begin) > 20*time.Second {
			t.Errorf("%s: got %q, exit %d after %v, want %q", url, out, code, time.Since(begin), want)
		}
	}
	if out := n.helper("half-close", elsewhere+":2000"); out != "5" {
		t.Errorf("got %q", out)
	}
}

// inside opens the world and a backend in it.
func inside(t *testing.T, kind string) (*world, sandbox.Backend, opener, forker) {
	t.Helper()
	if os.Getenv(insideWorld) != kind {
		t.Skip("is run by TestNetwork")
	}
	w := newWorld(t)
	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.CloseLater(t, backend)
	count := 0
	openFrom := func(t *testing.T, from sandbox.Snapshot, network sandbox.Network, allow ...string) networked {
		t.Helper()
		count++
		sb := sandboxtest.Box(t, backend, sandbox.Spec{ID: fmt.Sprintf("net-%d", count), From: from, Network: network, Allow: allow})
		if err := sb.Files().Write(t.Context(), sandbox.FileWrite{Path: "/tmp/ca.pem", Data: w.certificate}); err != nil {
			t.Fatal(err)
		}
		return networked{t, sb}
	}
	open := func(t *testing.T, network sandbox.Network, allow ...string) networked {
		t.Helper()
		return openFrom(t, nil, network, allow...)
	}
	return w, backend, open, openFrom
}

type (
	opener = func(t *testing.T, network sandbox.Network, allow ...string) networked
	forker = func(t *testing.T, from sandbox.Snapshot, network sandbox.Network, allow ...string) networked
)
