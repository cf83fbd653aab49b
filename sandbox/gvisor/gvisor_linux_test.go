package gvisor_test

import (
	"bufio"
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
	sandbox.Init()
	if os.Args[0] == runnerName {
		fmt.Fprintln(os.Stderr, runner(os.Args[1]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func open(t testing.TB) sandbox.Backend {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t testing.TB, stateDir string) sandbox.Backend {
	t.Helper()
	b, err := sandbox.Open("gvisor", sandbox.Options{StateDir: stateDir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	sandboxtest.Require(t, "gvisor", err)
	return b
}

func box(t testing.TB, b sandbox.Backend, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	sb, err := b.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	return sb
}

// TestMemory has a sandbox use more than it may.
func TestMemory(t *testing.T) {
	b := open(t)
	defer b.Close()
	if b.Guarantees().Limits[sandbox.LimitMemory] == "none" {
		t.Skip("the backend claims no limit of memory")
	}
	sb, other := box(t, b, sandbox.Spec{ID: "bomb", Limits: sandbox.Limits{Memory: 64 << 20, Disk: 16 << 20}}), box(t, b, sandbox.Spec{ID: "other"})
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"python3", "-c", "x=[]\nwhile True: x.append(bytearray(b'x' * (1<<20)))"}}, sandbox.RunOptions{})
	if !errors.Is(err, sandbox.ErrGone) && (err != nil || r.Exit.Signal != 9) {
		t.Errorf("got %+v, %q, %v, want it or the sandbox killed", r.Exit, r.Stderr.Bytes(), err)
	}
	if r, err := sandbox.Run(t.Context(), other, sandbox.Command{Args: []string{"echo", "hi"}}, sandbox.RunOptions{}); err != nil || string(r.Stdout.Bytes()) != "hi\n" {
		t.Errorf("the other: got %q, %v", r.Stdout.Bytes(), err)
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
	sb := box(t, b, sandbox.Spec{ID: "left"})
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

// processes are those of this machine whose command line holds a text.
func processes(text string) int {
	n := 0
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), text) {
			n++
		}
	}
	return n
}

func TestKilledRunner(t *testing.T) {
	dir := t.TempDir()
	open(t).Close()
	c := exec.Command("/proc/self/exe", dir)
	c.Args[0] = runnerName
	c.Stderr = t.Output()
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer c.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the runner said %q, %v", line, err)
	}
	// A kernel and what serves it files, for each sandbox.
	if n := processes("--root=" + dir); n < 6 {
		t.Errorf("got %d processes, want more", n)
	}
	if swept, err := sandbox.Sweep(dir); err != nil || len(swept) != 0 {
		t.Errorf("sweep of the living: got %v, %v", swept, err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	began := time.Now()
	for processes("--root="+dir) > 0 {
		if time.Since(began) > 2*time.Second {
			t.Fatalf("after %v: %d processes left", time.Since(began), processes("--root="+dir))
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("gone after %v", time.Since(began))
	if swept, err := sandbox.Sweep(dir); err != nil || len(swept) != 1 {
		t.Errorf("sweep: got %v, %v", swept, err)
	}
	if left, err := filepath.Glob(dir + "/*-*"); err != nil || len(left) != 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// runnerName is the name under which this test starts itself as a runner that is going to be killed.
const runnerName = "gvisor-test-runner"

func runner(dir string) error {
	b, err := sandbox.Open("gvisor", sandbox.Options{StateDir: dir})
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
	fmt.Println("ready")
	select {}
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
	open(t).Close()
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
	b, err := sandbox.Open("gvisor", sandbox.Options{StateDir: t.TempDir(), Images: store})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range 2 { // the second finds nothing of the first
		sb := box(t, b, sandbox.Spec{ID: fmt.Sprintf("image-%d", i), Image: "example"})
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
	open(t).Close()
	if out := sandboxtest.AsOrdinaryUser(t, "-test.v"); !strings.Contains(out, "--- PASS: TestContract/the_host's_files_are_invisible") {
		t.Errorf("the contract was not asked:\n%s", out)
	}
}

func BenchmarkOpen(b *testing.B) {
	backend := open(b)
	defer backend.Close()
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
	defer backend.Close()
	sb := box(b, backend, sandbox.Spec{ID: "bench"})
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
