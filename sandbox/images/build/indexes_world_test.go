//go:build linux

package build_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/sandboxtest"
)

// world is an internet of one machine: a network namespace in which every address is local. Every name has a public address there,
// whatever this machine's resolver makes of it (a mirror at an address that no sandbox reaches, say), and what connects to that
// speaks with the true owner of the name, whom the test outside dials. So builds meet the package indexes through all of their own
// network, as it is.
type world struct {
	relay string // the socket of the test outside

	mu    sync.Mutex
	names []string // the n-th has the n-th address
}

// worldRelay is set, to the socket of the test outside, in the process that enters a world.
const worldRelay = "TRAJGEN_TEST_WORLD"

// inWorld runs a test again in a world.
func inWorld(t *testing.T) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "relay")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go sandboxtest.ServeEach(l, dialFor)
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	c.Env = append(os.Environ(), worldRelay+"="+socket, "GOCOVERDIR=")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
}

// dialFor connects the world with what its first line names.
func dialFor(inside net.Conn) {
	r := bufio.NewReader(inside)
	target, err := r.ReadString('\n')
	if err != nil {
		return
	}
	outside, err := net.Dial("tcp", strings.TrimSpace(target))
	if err != nil {
		return
	}
	defer outside.Close()
	splice(outside, inside, r)
}

// splice copies both ways; from is what inside sends.
func splice(outside, inside net.Conn, from io.Reader) {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(outside, from); halfClose(outside) })
	both.Go(func() { _, _ = io.Copy(inside, outside); halfClose(inside) })
	both.Wait()
}

func halfClose(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// enterWorld makes the world, in the process that inWorld starts.
func enterWorld(t *testing.T) {
	t.Helper()
	for _, args := range []string{"link set lo up", "route add local 0.0.0.0/0 dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	resolver := filepath.Join(t.TempDir(), "resolv.conf")
	err := errors.Join(os.WriteFile(resolver, []byte("nameserver 9.9.9.9\n"), 0o644), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(resolver, "/etc/resolv.conf", "", unix.MS_BIND, ""))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{relay: os.Getenv(worldRelay)}
	conn, err := net.ListenPacket("udp", "9.9.9.9:53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go sandboxtest.ServeNames(conn, w.addresses)
	for _, port := range []string{"80", "443"} {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go sandboxtest.ServeEach(l, w.carry)
	}
}

// addresses returns the address that a name has in the world.
func (w *world) addresses(name string, _ bool) ([]netip.Addr, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := slices.Index(w.names, name)
	if n < 0 {
		n = len(w.names)
		w.names = append(w.names, name)
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 216, byte(n)})}, true
}

// carry has the test outside connect to the name whose address a connection came to.
func (w *world) carry(inner net.Conn) {
	at := netip.MustParseAddrPort(inner.LocalAddr().String())
	n := int(at.Addr().Unmap().As4()[3])
	w.mu.Lock()
	known := n < len(w.names)
	var name string
	if known {
		name = w.names[n]
	}
	w.mu.Unlock()
	if !known {
		return
	}
	outer, err := net.Dial("unix", w.relay)
	if err != nil {
		return
	}
	defer outer.Close()
	if _, err := fmt.Fprintf(outer, "%s:%d\n", name, at.Port()); err != nil {
		return
	}
	splice(outer, inner, inner)
}
