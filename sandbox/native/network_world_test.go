//go:build linux

package native_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/sandboxtest"
)

// world is an internet of one machine: a network namespace of the test's own in which every address is local, with servers
// on all of them, and a name server that this program asks like any other. What a sandbox must not reach is there as well.
type world struct {
	certificate []byte // of the authority that the servers' come from

	mu    sync.Mutex
	names map[string][]netip.Addr
	asked map[string]int

	holding atomic.Int64 // connections to the server that takes all and says nothing
}

const (
	// ownPublic is a public address of the machine that the sandboxes run on.
	ownPublic = "151.101.1.69"
	// elsewhere and other are machines of the internet.
	elsewhere, other = "93.184.216.34", "93.184.216.99"
	sixth            = "2606:2800:220:1::1"
)

// enterWorld is called in a network and mount namespace of the test's own, as root.
func enterWorld() error {
	commands := [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", ownPublic + "/32", "dev", "lo"},
		{"route", "add", "local", "0.0.0.0/0", "dev", "lo", "src", ownPublic},
		{"-6", "route", "add", "local", "::/0", "dev", "lo"},
	}
	for _, args := range commands {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	// The servers belong to an ordinary user.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0o644); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for name, content := range map[string]string{"/etc/resolv.conf": "nameserver 9.9.9.9\n", "/etc/hosts": "127.0.0.1 localhost\n"} {
		file, err := os.CreateTemp("", "world")
		if err != nil {
			return err
		}
		_, err = file.WriteString(content)
		err = errors.Join(err, file.Chmod(0o644), file.Close(), unix.Mount(file.Name(), name, "", unix.MS_BIND, ""), os.Remove(file.Name()))
		if err != nil {
			return fmt.Errorf("put a %s of our own in place: %w", name, err)
		}
	}
	return nil
}

// forbidRules keeps this thread, and what it executes, from speaking to the kernel's firewall.
func forbidRules() error {
	const offsetCall, offsetFamily, offsetProtocol = 0, 16, 32
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(k uint32, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: no}
	}
	filter := []unix.SockFilter{
		load(offsetCall), equal(unix.SYS_SOCKET, 5), load(offsetFamily), equal(unix.AF_NETLINK, 3), load(offsetProtocol), equal(unix.NETLINK_NETFILTER, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPROTONOSUPPORT)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// newWorld starts the servers.
func newWorld(t *testing.T) *world {
	t.Helper()
	addresses := func(list ...string) (all []netip.Addr) {
		for _, a := range list {
			all = append(all, netip.MustParseAddr(a))
		}
		return all
	}
	w := &world{asked: map[string]int{}, names: map[string][]netip.Addr{
		"example.org": addresses(elsewhere), "www.example.org": addresses(elsewhere), "other.example": addresses(other),
		"six.example.org": addresses(sixth), "dead.example.org": addresses("93.184.216.200"),
		"private.example.org": addresses("10.0.0.5"), "mapped.example.org": addresses("::ffff:10.0.0.5"),
		"nat64.example.org": addresses("64:ff9b::a00:5"), "metadata.example.org": addresses("169.254.169.254", "fd00:ec2::254"),
		"loop.example.org": addresses("127.0.0.1"), "own.example.org": addresses(ownPublic), "mixed.example.org": addresses("10.0.0.5", elsewhere),
		"mirror.example.org": addresses("10.7.7.7"),
		// The first answer is harmless.
		"rebind.example.org": addresses(elsewhere),
	}}
	conn, err := net.ListenPacket("udp", "9.9.9.9:53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go sandboxtest.ServeNames(conn, w.find)
	handler := http.HandlerFunc(w.serve)
	certificate := w.authority(t)
	quiet := log.New(io.Discard, "", 0)
	for _, port := range []string{"80", "8080"} {
		w.listen(t, port, func(l net.Listener) { _ = (&http.Server{Handler: handler, ErrorLog: quiet}).Serve(l) })
	}
	for _, port := range []string{"443", "8443"} {
		w.listen(t, port, func(l net.Listener) {
			server := &http.Server{Handler: handler, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
			_ = server.ServeTLS(l, "", "")
		})
	}
	w.listen(t, "7", func(l net.Listener) { sandboxtest.ServeEach(l, func(c net.Conn) { _, _ = io.Copy(c, c) }) })
	w.listen(t, "9", func(l net.Listener) {
		sandboxtest.ServeEach(l, func(c net.Conn) {
			w.holding.Add(1)
			defer w.holding.Add(-1)
			_, _ = io.Copy(io.Discard, c)
		})
	})
	// It adds up what it is told, and answers when all has been said.
	w.listen(t, "2000", func(l net.Listener) {
		sandboxtest.ServeEach(l, func(c net.Conn) {
			n, _ := io.Copy(io.Discard, c)
			fmt.Fprintln(c, n)
		})
	})
	// It gives without being asked.
	w.listen(t, "19", func(l net.Listener) {
		sandboxtest.ServeEach(l, func(c net.Conn) { _, _ = io.CopyN(c, zeros{}, big100) })
	})
	return w
}

const big100 = 100 << 20

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func (w *world) listen(t *testing.T, port string, serve func(net.Listener)) {
	t.Helper()
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l)
}

// serve tells where a request arrived and whom it was for.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/slow" {
		time.Sleep(300 * time.Millisecond)
	}
	n, _ := io.Copy(io.Discard, r.Body)
	local := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	fmt.Fprintf(rw, "at=%v for=%s tls=%v body=%d path=%s upgrade=%q agent=%q\n", local, r.Host, r.TLS != nil, n, r.URL.Path, r.Header.Get("Upgrade"), r.UserAgent())
}

func (w *world) find(name string, count bool) ([]netip.Addr, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if count {
		w.asked[name]++
	}
	addresses, ok := w.names[name]
	return addresses, ok
}

func (w *world) set(name, address string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[name] = []netip.Addr{netip.MustParseAddr(address)}
}

// authority makes a certificate for all names of the world, and what vouches for it.
func (w *world) authority(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "world"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		DNSNames: []string{"example.org", "*.example.org", "other.example"}, IPAddresses: []net.IP{net.ParseIP(elsewhere)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	w.certificate = out.Bytes()
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
