//go:build linux

package native_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
)

// cut are curl's exit codes where a connection is refused or closed: before, while or after it sends its request.
var cut = []int{7, 52, 55, 56}

func testFull(t *testing.T, w *world, open opener) {
	t.Run("full", func(t *testing.T) {
		n := open(t, sandbox.NetworkFull)
		for name, tt := range map[string]struct {
			args []string
			want string
			code []int
			why  string
		}{
			"name":                    {args: []string{"https://other.example/"}, want: "at=93.184.216.99:443"},
			"port":                    {args: []string{"http://example.org:8080/"}, want: "at=93.184.216.34:8080"},
			"address":                 {args: []string{"http://93.184.216.99:8080/"}, want: "at=93.184.216.99:8080"},
			"six":                     {args: []string{"http://[2606:2800:220:1::1]/"}, want: "at=[2606:2800:220:1::1]:80"},
			"mapped public":           {args: []string{"http://[::ffff:93.184.216.99]/"}, want: "at=93.184.216.99:80"},
			"other server for names":  {args: []string{"http://example.org/"}, want: "at="},
			"no such name":            {args: []string{"http://nosuch.example/"}, code: []int{6}},
			"private":                 {args: []string{"http://10.0.0.5/"}, code: cut, why: "private"},
			"private mapped":          {args: []string{"http://[::ffff:10.0.0.5]/"}, code: cut, why: "private"},
			"private in six":          {args: []string{"http://[64:ff9b::a00:5]/"}, code: cut, why: "private"},
			"unique local":            {args: []string{"http://[fd12:3456::1]/"}, code: cut, why: "private"},
			"provider's":              {args: []string{"http://100.64.1.1/"}, code: cut, why: "provider"},
			"metadata":                {args: []string{"http://169.254.169.254/"}, code: cut, why: "metadata"},
			"metadata of another":     {args: []string{"http://168.63.129.16/"}, code: cut, why: "metadata"},
			"metadata in six":         {args: []string{"http://[fd00:ec2::254]/"}, code: cut, why: "metadata"},
			"multicast":               {args: []string{"http://224.0.0.1/"}, code: cut},
			"own address":             {args: []string{"http://" + ownPublic + "/"}, code: cut, why: "this machine"},
			"loopback is its own":     {args: []string{"http://127.0.0.1/"}, code: []int{7}},
			"loopback in six":         {args: []string{"http://[::1]/"}, code: []int{7}},
			"no address":              {args: []string{"http://0.0.0.0/"}, code: []int{7}},
			"private by name":         {args: []string{"http://private.example.org/"}, code: cut, why: "private"},
			"address without a name":  {args: []string{"http://198.18.77.77/"}, code: cut, why: "no name"},
			"its listener by itself":  {args: []string{"http://127.0.0.1:65533/"}, code: cut},
			"its listener, elsewhere": {args: []string{"http://93.184.216.34:65533/"}, code: cut},
		} {
			t.Run(name, func(t *testing.T) {
				n := networked{t, n.Sandbox}
				begin := time.Now()
				out, code := n.curl(tt.args...)
				if tt.want != "" && (code != 0 || !strings.Contains(out, tt.want)) {
					t.Errorf("got exit %d, %q, want %q; %+v", code, out, tt.want, n.last())
				}
				if tt.want == "" && !slices.Contains(tt.code, code) {
					t.Errorf("got exit %d, %q, want one of %v; %+v", code, out, tt.code, n.last())
				}
				if time.Since(begin) > 30*time.Second { // what nobody answers takes minutes
					t.Errorf("it took %v", time.Since(begin))
				}
				if tt.why != "" && !strings.Contains(n.last().Refused, tt.why) {
					t.Errorf("reason: got %+v, want %q", n.last(), tt.why)
				}
			})
		}
		t.Run("python", func(t *testing.T) {
			n := networked{t, n.Sandbox}
			script := `import socket, urllib.request
print(socket.gethostbyname("localhost"), urllib.request.urlopen("http://example.org/py").read().decode())
try: socket.getaddrinfo("nosuch.example", 80)
except socket.gaierror as e: print(e.errno == socket.EAI_NONAME)
a = {i[4][0] for i in socket.getaddrinfo("example.org", 80, flags=socket.AI_ADDRCONFIG)}
print(len(a))`
			out, stderr, code := n.run(sandbox.Command{Args: []string{"/usr/bin/python3", "-c", script}})
			if code != 0 || !strings.HasPrefix(out, "127.0.0.1 at=93.184.216.34:80") || !strings.HasSuffix(out, "True\n1") {
				t.Errorf("got %q, %q, exit %d", out, stderr, code)
			}
		})
		t.Run("names are asked of any server", func(t *testing.T) {
			n := networked{t, n.Sandbox}
			script := `import socket, struct
q = struct.pack(">HHHHHH", 7, 256, 1, 0, 0, 0) + b"\x07example\x03org\x00" + struct.pack(">HH", 1, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3); s.connect(("8.8.8.8", 53)); s.send(q)
u = s.recv(512)
t = socket.create_connection(("1.1.1.1", 53), 3); t.sendall(struct.pack(">H", len(q)) + q)
v = t.recv(512)[2:]
print(u == v, socket.inet_ntoa(u[-4:]) == socket.gethostbyname("example.org"))`
			if out, stderr, _ := n.run(sandbox.Command{Args: []string{"/usr/bin/python3", "-c", script}}); out != "True True" {
				t.Errorf("got %q, %q", out, stderr)
			}
		})
		t.Run("other protocols end at once", func(t *testing.T) {
			n := networked{t, n.Sandbox}
			for _, address := range []string{"8.8.8.8:123", "93.184.216.34:443", "10.0.0.5:53000", "[2606:2800:220:1::1]:443"} {
				if out := n.helper("udp", address); !strings.Contains(out, "refused") || !strings.HasSuffix(out, "true") {
					t.Errorf("%s: got %q", address, out)
				}
			}
		})
		t.Run("its own servers", func(t *testing.T) {
			n := networked{t, n.Sandbox}
			script := `import http.server, threading, urllib.request
for port in (80, 53, 443):
    s = http.server.HTTPServer(("127.0.0.1" if port == 53 else "0.0.0.0", port), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    print(urllib.request.urlopen("http://127.0.0.1:%d/" % port).status)`
			if out, stderr, _ := n.run(sandbox.Command{Args: []string{"/usr/bin/python3", "-c", script}}); out != "200\n200\n200" {
				t.Errorf("got %q, %q", out, stderr)
			}
		})
		t.Run("the same addresses in every sandbox", func(t *testing.T) {
			lookup := sandbox.Command{Args: []string{"/usr/bin/getent", "hosts", "example.org"}}
			first, _, _ := n.run(lookup)
			second := open(t, sandbox.NetworkFull)
			second.curl("http://other.example/")
			if got, _, _ := second.run(lookup); got != first || !strings.HasPrefix(got, "198.1") {
				t.Errorf("got %q and %q", first, got)
			}
		})
	})
}
