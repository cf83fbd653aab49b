package native_test

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
)

// withoutNamespaces are the cases that need some.
var withoutNamespaces = map[string]string{
	"the host's files are invisible":             "names are visible, contents are not",
	"the host's processes are invisible":         "they are visible, and cannot be signalled or looked into",
	"two sandboxes share no processes nor ports": "they see each other's",
	"no network":                                  "there is no loopback; networks are tried below",
	"a server on loopback":                        "there is no loopback but the machine's",
	"the host's sockets cannot be reached":        "those that are files can, by a command of the same user; the others are tried below",
	"network full":                                "it is the machine's own, and said so; tried below",
	"attempts":                                    "names in /dev and /sys are visible, and the machine's name",
	"what can be written":                         "there is one directory, not the usual ones",
	"threads and forks work":                      "semaphores need /dev/shm",
	"the same commands say the same":              "paths and ids differ",
	"remove and mounts":                           "there are none",
	"setuid programs give nothing":                "the case writes to /tmp",
	"root may give files away and become another": "nobody is root",
}

// TestLandlock asks native everything that it promises where no namespaces can be made.
func TestLandlock(t *testing.T) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return openWithout(t) }, sandboxtest.Caps{Lacks: withoutNamespaces})
}

func openWithout(t testing.TB) sandbox.Backend {
	t.Helper()
	return try(t, native.Trial{Landlock: true}, sandboxtest.OpenDir(t))
}

func TestLandlockOrdinaryUser(t *testing.T) {
	out := sandboxtest.AsOrdinaryUser(t, "-test.run=^TestLandlock$", "-test.v")
	if !strings.Contains(out, "--- PASS: TestLandlock/exit_codes") {
		t.Errorf("the contract was not asked:\n%s", out)
	}
}

// TestLandlockConfines tries what the contract leaves out here.
func TestLandlockConfines(t *testing.T) {
	b := openWithout(t)
	outside := sandboxtest.OpenDir(t) + "/secret"
	if err := os.WriteFile(outside, []byte("secret\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	host := exec.Command("sleep", "73.1")
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	defer host.Wait()
	defer host.Process.Kill()
	other := sandboxtest.Box(t, b, sandbox.Spec{ID: "other"})
	if err := other.Files().Write(t.Context(), sandbox.FileWrite{Path: "theirs", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "alone", Network: sandbox.NetworkNone})
	theirs := other.Layout().Workdir + "/theirs"
	for _, script := range []string{
		"cat " + outside, "echo x >> " + outside, "rm " + outside, "touch /tmp/planted", "cat " + theirs, "touch " + other.Layout().Workdir + "/x",
		"ln " + theirs + " stolen", "mv " + theirs + " .", "kill $PPID", "kill -9 -1; kill -0 $PPID", "ls " + other.Layout().Workdir,
		"cat /proc/$PPID/environ", "cat /proc/$PPID/mem", "ls /proc/$PPID/fd/",
		"python3 -c 'import socket; socket.socket()'", "python3 -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)'",
	} {
		r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"sh", "-c", script}}, sandbox.RunOptions{})
		if err != nil || r.Exit.Code == 0 {
			t.Errorf("%s: got %+v, %q, %v, want a failure", script, r.Exit, r.Stdout.Bytes(), err)
		}
	}
	if content, err := os.ReadFile(outside); err != nil || string(content) != "secret\n" {
		t.Errorf("outside: got %q, %v", content, err)
	}
	if sandboxtest.Sleepers("73.1") != 1 {
		t.Error("a process outside was ended")
	}
}

// TestLandlockNetworks has the two there are.
func TestLandlockNetworks(t *testing.T) {
	b := openWithout(t)
	if g := b.Guarantees(); !slices.Equal(g.Network, []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkFull}) {
		t.Errorf("got %v", g.Network)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	script := "import socket; socket.create_connection(('127.0.0.1', " + port + "), 5)"
	for network, want := range map[sandbox.Network]int{"": 1, sandbox.NetworkNone: 1, sandbox.NetworkFull: 0} {
		sb, err := b.Open(t.Context(), sandbox.Spec{ID: "network-" + string(network), Network: network})
		if err != nil {
			t.Fatal(err)
		}
		r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"python3", "-c", script}}, sandbox.RunOptions{})
		if err != nil || r.Exit.Code != want {
			t.Errorf("network %q: got %+v, %v, want exit code %d, stderr %q", network, r.Exit, err, want, r.Stderr.Bytes())
		}
	}
	for _, spec := range []sandbox.Spec{{ID: "refused", Network: sandbox.NetworkLoopback}, {ID: "refused", Network: sandbox.NetworkAllowlist, Allow: []string{"example.org"}}} {
		_, err := b.Open(t.Context(), spec)
		if err == nil || !strings.Contains(err.Error(), "[none full]") || !strings.Contains(err.Error(), "without namespaces") {
			t.Errorf("network %s: got %v", spec.Network, err)
		}
	}
}

// TestLandlockFallback opens native where the kernel refuses to make namespaces.
func TestLandlockFallback(t *testing.T) {
	const child = "SANDBOX_TEST_WITHOUT_NAMESPACES"
	if os.Getenv(child) != "" {
		b, err := sandbox.Open("native", sandbox.Options{StateDir: sandboxtest.OpenDir(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		g := b.Guarantees()
		if g.Level != sandbox.LevelLandlock || len(g.Missing) == 0 || !strings.Contains(g.Missing[0], "not permitted") {
			t.Errorf("got %+v", g)
		}
		return
	}
	setpriv, err := exec.LookPath("setpriv")
	if os.Getuid() != 0 || err != nil {
		t.Skip("needs root and setpriv")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(setpriv, "--bounding-set=-sys_admin,-setfcap", self, "-test.run=^TestLandlockFallback$")
	c.Env = append(os.Environ(), child+"=1")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// heldName is the name under which this test starts itself as a runner that is going to be killed.
const heldName = "native-test-landlock"

func init() {
	sandboxtest.Role(heldName, func(args []string) error {
		b, err := native.Try(native.Trial{Landlock: true}, sandbox.Options{StateDir: args[0]})
		if err != nil {
			return err
		}
		return sandboxtest.Hold(b, 5, args[1])
	})
}

// TestLandlockKilledRunner kills the runner: nothing runs on, and the next start removes what lies on disk.
func TestLandlockKilledRunner(t *testing.T) {
	openWithout(t)
	stateDir := sandboxtest.OpenDir(t)
	c := sandboxtest.Runner(t, heldName, stateDir, "173.6")
	sandboxtest.Eventually(t, 30*time.Second, "three sleepers in each", func() bool { return sandboxtest.Sleepers("173.6") == 15 })
	sandboxtest.Kill(t, c)
	sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers("173.6") == 0 })
	if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1 || len(sandboxtest.Instances(stateDir)) != 0 {
		t.Errorf("sweep: got %v, %v", swept, err)
	}
}
