package sandboxtest

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"trajgen/sandbox"
)

// knock tries to connect to each of its arguments, an address and a port, and prints those where it could.
const knock = `import socket, sys
for target in sys.argv[1:]:
    host, port = target.rsplit("@", 1)
    try:
        s = socket.create_connection((host, int(port)), 5)
        s.settimeout(5)
        if s.recv(1): print("reached", target)
    except OSError: pass`

// networkCases are for backends with network modes that allow some connections. They need no network outside of the machine:
// none of them connects to a target that is allowed.
var networkCases = []testCase{
	{name: "network allowlist", isolation: true, check: func(k *kit) { k.outside(sandbox.NetworkAllowlist, "allowed.invalid") }},
	{name: "network full", isolation: true, check: func(k *kit) { k.outside(sandbox.NetworkFull) }},
	{name: "allow lists are checked", isolation: true, check: func(k *kit) {
		k.offers(sandbox.NetworkAllowlist)
		for _, spec := range []sandbox.Spec{
			{Network: sandbox.NetworkAllowlist}, {Network: sandbox.NetworkAllowlist, Allow: []string{"https://example.org"}},
			{Network: sandbox.NetworkAllowlist, Allow: []string{"169.254.169.254"}}, {Allow: []string{"example.org"}},
		} {
			spec.ID = fmt.Sprintf("suite-%d", boxes.Add(1))
			if sb, err := k.backend.Open(k.Context(), spec); err == nil {
				k.Errorf("%+v was opened", spec)
				_ = sb.Close()
			}
		}
	}},
}

func (k *kit) offers(network sandbox.Network) {
	k.Helper()
	if !slices.Contains(k.backend.Guarantees().Network, network) {
		k.Skipf("the backend does not offer network %s", network)
	}
}

// outside checks that a sandbox cannot reach this machine and its networks, that the attempts fail quickly, and that they are
// listed.
func (k *kit) outside(network sandbox.Network, allow ...string) {
	k.Helper()
	k.offers(network)
	sb := k.open(sandbox.Spec{Network: network, Allow: allow})
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		k.Fatal(err)
	}
	var reached atomic.Int64
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_, _ = c.Write([]byte("hello"))
			c.Close()
		}
	}()
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	hosts := []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "127.1.2.3", "64:ff9b::7f00:1"}
	own, err := net.InterfaceAddrs()
	if err != nil {
		k.Fatal(err)
	}
	for _, a := range own {
		host, _, _ := strings.Cut(a.String(), "/")
		hosts = append(hosts, host)
	}
	args := []string{"python3", "-c", knock}
	for _, host := range hosts {
		args = append(args, fmt.Sprintf("%s@%d", host, port))
	}
	args = append(args, "169.254.169.254@80", "fd00:ec2::254@80", "10.0.0.1@80", "192.168.0.1@80", "100.100.100.200@80", "224.0.0.1@80", "2002:7f00:1::@80")
	begin := time.Now()
	equal(k, "reached", string(k.runIn(sb, sandbox.Command{Args: args}, 20*time.Second).Stdout.Bytes()), "")
	if took := time.Since(begin); took > 10*time.Second {
		k.Errorf("to be told so took %v", took)
	}
	equal(k, "connections to this machine", reached.Load(), int64(0))
	if network == sandbox.NetworkAllowlist {
		r := k.runIn(sb, sandbox.Command{Args: []string{"python3", "-c", "import socket; socket.gethostbyname('other.invalid')"}}, 10*time.Second)
		if r.Exit.Code == 0 || r.TimedOut {
			k.Errorf("a name that is not allowed: %+v", r.Exit)
		}
	}
	traffic, ok := sb.(sandbox.Traffic)
	if !ok {
		return
	}
	for _, c := range traffic.Connections() {
		if c.Refused == "" {
			k.Errorf("listed as allowed: %+v", c)
		}
	}
	if !slices.ContainsFunc(traffic.Connections(), func(c sandbox.Connection) bool { return c.Host == "169.254.169.254" && c.Port == 80 }) {
		k.Errorf("not listed: %+v", traffic.Connections())
	}
}
