package gvisor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	_ "trajgen/sandbox/gvisor"
	"trajgen/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Init()
	os.Exit(m.Run())
}

func open(t testing.TB) sandbox.Backend {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t testing.TB, stateDir string) sandbox.Backend {
	t.Helper()
	return sandboxtest.Open(t, "gvisor", sandbox.Options{StateDir: stateDir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

// TestMemory has a sandbox use more than it may.
func TestMemory(t *testing.T) {
	b := open(t)
	if b.Guarantees().Limits[sandbox.LimitMemory] == "none" {
		t.Skip("the backend claims no limit of memory")
	}
	sb, other := sandboxtest.Box(t, b, sandbox.Spec{ID: "bomb", Limits: sandbox.Limits{Memory: 64 << 20, Disk: 16 << 20}}), sandboxtest.Box(t, b, sandbox.Spec{ID: "other"})
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"python3", "-c", "x=[]\nwhile True: x.append(bytearray(b'x' * (1<<20)))"}}, sandbox.RunOptions{})
	if !errors.Is(err, sandbox.ErrGone) && (err != nil || r.Exit.Signal != 9) {
		t.Errorf("got %+v, %q, %v, want it or the sandbox killed", r.Exit, r.Stderr.Bytes(), err)
	}
	if got := sandboxtest.Sh(t, other, "echo hi"); got != "hi\n" {
		t.Errorf("the other: got %q", got)
	}
}

// TestNothingLeft looks at what is on the machine when sandboxes have ended.
func TestNothingLeft(t *testing.T) {
	dir := t.TempDir()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	b := openIn(t, dir)
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "left"})
	if during, _ := os.ReadFile("/proc/self/mountinfo"); string(during) != string(mounts) {
		t.Errorf("mounts changed:\n%s\n%s", mounts, during)
	}
	if live, err := sandbox.List(dir); err != nil || len(live) != 1 || live[0].ID != "left" {
		t.Errorf("list: got %v, %v", live, err)
	}
	if err := errors.Join(sb.Close(), b.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
	if left, err := filepath.Glob(dir + "/*-*"); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
	left, _ := filepath.Glob("/sys/fs/cgroup/*/trajgen-gvisor-*")
	if len(left) != 0 {
		t.Errorf("cgroups left: %q", left)
	}
}

func TestKilledRunner(t *testing.T) {
	dir := t.TempDir()
	open(t)
	c := sandboxtest.Runner(t, runnerName, dir)
	// A kernel and what serves it files, for each sandbox.
	processes := func() int {
		return sandboxtest.Processes(func(line string) bool { return strings.Contains(line, "--root="+dir) })
	}
	if n := processes(); n < 6 {
		t.Errorf("got %d processes, want more", n)
	}
	if swept, err := sandbox.Sweep(dir); err != nil || len(swept) != 0 {
		t.Errorf("sweep of the living: got %v, %v", swept, err)
	}
	sandboxtest.Kill(t, c)
	took := sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return processes() == 0 })
	t.Logf("gone after %v", took)
	if swept, err := sandbox.Sweep(dir); err != nil || len(swept) != 1 {
		t.Errorf("sweep: got %v, %v", swept, err)
	}
	if left, err := filepath.Glob(dir + "/*-*"); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// runnerName is the name under which this test starts itself as a runner that is going to be killed.
const runnerName = "gvisor-test-runner"

func init() { sandboxtest.Role(runnerName, runner) }

func runner(args []string) error {
	b, err := sandbox.Open("gvisor", sandbox.Options{StateDir: args[0]})
	if err != nil {
		return err
	}
	for _, id := range []string{"one", "two", "three"} {
		sb, err := b.Open(context.Background(), sandbox.Spec{ID: id})
		if err == nil {
			_, err = sb.Start(context.Background(), sandbox.Command{Args: []string{"sleep", "1000"}})
		}
		if err != nil {
			return err
		}
	}
	return sandboxtest.Ready()
}

// layers is an image store of directories.
type layers struct{ dir string }

func (l layers) Dir() string { return l.dir }

func (l layers) Find(_ context.Context, reference string) (sandbox.Image, error) {
	return sandbox.Image{Digest: reference, Layers: []string{"top", "bottom"}, Env: []string{"FROM_IMAGE=yes"}, Workdir: "/srv/app"}, nil
}

// TestImage takes the file system of an image in layers.
func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("images take root")
	}
	open(t)
	store := layers{t.TempDir()}
	libraries, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		t.Skipf("no shell to make an image of: %v", err)
	}
	files := map[string]string{"bottom/etc/both": "bottom", "bottom/etc/lower": "bottom", "top/etc/both": "top", "top/srv/app/file": "in the image"}
	for _, name := range append(strings.Fields(string(libraries)), "/bin/sh") {
		if content, err := os.ReadFile(name); strings.HasPrefix(name, "/") && err == nil {
			files["bottom"+name] = string(content)
		}
	}
	for name, content := range files {
		path := filepath.Join(store.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	b := sandboxtest.Open(t, "gvisor", sandbox.Options{Images: store})
	for i := range 2 { // the second finds nothing of the first
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: fmt.Sprintf("image-%d", i), Image: "example"})
		r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"/bin/sh", "-c", "read a < /etc/both; read b < /etc/lower; read c < file; echo $a $b $c $FROM_IMAGE; [ ! -e new ] && echo x > new && echo x > /etc/both"}}, sandbox.RunOptions{})
		if err != nil || r.Exit.Code != 0 || string(r.Stdout.Bytes()) != "top bottom in the image yes\n" {
			t.Errorf("got %+v, %q, %q, %v", r.Exit, r.Stdout.Bytes(), r.Stderr.Bytes(), err)
		}
		sb.Close()
	}
	if content, err := os.ReadFile(filepath.Join(store.dir, "top/etc/both")); err != nil || string(content) != "top" {
		t.Errorf("the layer changed: %q, %v", content, err)
	}
}

// caps are what gVisor is not.
var caps = sandboxtest.Caps{Lacks: map[string]string{
	"attempts":          "process 1 is the agent, and gVisor lets root kill it: the sandbox is lost then",
	"disk flood":        "files in /dev/shm have a limit of their own",
	"hostile workloads": "process 1 is the agent, and gVisor lets root kill it: the sandbox is lost then",
}}

func TestContract(t *testing.T) {
	caps := sandboxtest.Caps{Lacks: maps.Clone(caps.Lacks)}
	if os.Getuid() != 0 {
		caps.Lacks["no network"] = "network none has a loopback"
	}
	sandboxtest.Run(t, open, caps)
}

// TestOrdinaryUser runs the tests again as a user without any rights.
func TestOrdinaryUser(t *testing.T) {
	open(t)
	if out := sandboxtest.AsOrdinaryUser(t, "-test.v"); !strings.Contains(out, "--- PASS: TestContract/the_host's_files_are_invisible") {
		t.Errorf("the contract was not asked:\n%s", out)
	}
}

func BenchmarkOpen(b *testing.B) {
	backend := open(b)
	for i := 0; b.Loop(); i++ {
		sb, err := backend.Open(b.Context(), sandbox.Spec{ID: fmt.Sprint("bench-", i)})
		if err == nil {
			err = sb.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExec(b *testing.B) {
	backend := open(b)
	sb := sandboxtest.Box(b, backend, sandbox.Spec{ID: "bench"})
	for b.Loop() {
		p, err := sb.Start(b.Context(), sandbox.Command{Args: []string{"/bin/true"}})
		if err == nil {
			_, err = p.Wait(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
