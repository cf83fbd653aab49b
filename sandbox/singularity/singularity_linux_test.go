package singularity_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
	_ "trajgen/sandbox/singularity"
)

func TestMain(m *testing.M) {
	sandboxtest.Init()
	Main()
	os.Exit(m.Run())
}

// settings are those with which the contract is asked. The backend has two names.
var settings = map[string]map[string]string{
	"fakeroot":    {"fakeroot": "true", "limits": "none"},
	"apptainer":   {"limits": "none"},
	"singularity": {"limits": "none"},
}

func TestContract(t *testing.T) {
	for name, more := range settings {
		t.Run(name, func(t *testing.T) {
			if name == "fakeroot" && os.Getuid() == 0 {
				t.Skip("is for ordinary users")
			}
			caps := sandboxtest.Caps{Lacks: maps.Clone(Caps.Lacks)}
			if os.Getuid() != 0 {
				caps.Lacks["root may give files away and become another"] = "the stand-in gives an ordinary user a single id"
			}
			if name != "fakeroot" && os.Getuid() != 0 {
				caps.Lacks["the verifier's directory"] = "an agent that is not root inside cannot open what a command has shut"
			}
			s, err := Install(t)
			sandboxtest.Require(t, "apptainer", err)
			backend := "apptainer"
			if name == "singularity" {
				backend = name
			}
			sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return openAs(t, backend, s, more) }, caps)
		})
	}
}

func open(t testing.TB, s *Stand, more map[string]string) sandbox.Backend {
	t.Helper()
	return openAs(t, "apptainer", s, more)
}

func openAs(t testing.TB, name string, s *Stand, more map[string]string) sandbox.Backend {
	t.Helper()
	settings := map[string]string{"program": s.Program, "image": s.Image}
	maps.Copy(settings, more)
	b, err := sandbox.Open(name, sandbox.Options{StateDir: t.TempDir(), Settings: settings, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.CloseLater(t, b)
	return b
}

// TestOrdinaryUser runs the tests again as a user without any rights, as those of clusters are.
func TestOrdinaryUser(t *testing.T) {
	out := sandboxtest.AsOrdinaryUser(t, "-test.v")
	if !strings.Contains(out, "--- PASS: TestContract/fakeroot/the_host's_files_are_invisible") {
		t.Errorf("the contract was not asked:\n%s", out)
	}
}

func install(t testing.TB) *Stand {
	t.Helper()
	s, err := Install(t)
	sandboxtest.Require(t, "apptainer", err)
	return s
}

func says(t testing.TB, b sandbox.Backend, spec sandbox.Spec, script string) string {
	t.Helper()
	sb, err := b.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	return sandboxtest.Sh(t, sb, script)
}

// TestImages has many open sandboxes of images that must be fetched.
func TestImages(t *testing.T) {
	s := install(t)
	for _, name := range []string{"one", "library/two:3"} {
		if err := s.Publish(name, "IMAGE="+name); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, s, map[string]string{"limits": "none"})
	var wait sync.WaitGroup
	for i := range 12 {
		image := []string{"one", "docker://library/two:3"}[i%2]
		wait.Go(func() {
			want := strings.TrimPrefix(image, "docker://") + "\n"
			if got := says(t, b, sandbox.Spec{ID: fmt.Sprint("image-", i), Image: image}, "echo $IMAGE"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	wait.Wait()
	if n := strings.Count(s.Calls(), "pull "); n != 2 {
		t.Errorf("got %d pulls, want one of each image", n)
	}
	if got := says(t, b, sandbox.Spec{ID: "mine", Image: "one", Env: map[string]string{"IMAGE": "mine"}}, "echo $IMAGE"); got != "mine\n" {
		t.Errorf("the task's variable: got %q", got)
	}
	for image, want := range map[string]string{"docker://nowhere": "manifest unknown", "/no/such.sif": "no such file", "--bind": "is none"} {
		if sb, err := b.Open(t.Context(), sandbox.Spec{ID: "none", Image: image}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", image, sb, err, want)
		}
	}
}

// TestArguments looks at what the program is told of limits and networks.
func TestArguments(t *testing.T) {
	s := install(t)
	b := open(t, s, map[string]string{"host_network": "true"})
	for name, want := range map[string]string{"memory": "hard", "processes": "hard", "cpu": "hard"} {
		if got := b.Guarantees().Limits[name]; got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	says(t, b, sandbox.Spec{ID: "limited", Workdir: "/srv/app", Limits: sandbox.Limits{Memory: 100 << 20, Processes: 20, CPUs: 0.5}}, "[ $PWD = /srv/app ]")
	says(t, b, sandbox.Spec{ID: "connected", Network: sandbox.NetworkFull}, "true")
	var starts []string
	for line := range strings.Lines(s.Calls()) {
		if strings.HasPrefix(line, "instance start ") {
			starts = append(starts, line)
		}
	}
	if len(starts) != 3 {
		t.Fatalf("got %q", starts)
	}
	for _, want := range []string{" --memory 171966464 --memory-swap 171966464 --pids-limit 68 --cpus 0.5 ", " --net --network none ", " --scratch /srv/app ", " --containall --cleanenv "} {
		if !strings.Contains(starts[1], want) {
			t.Errorf("got %q, want %q in it", starts[1], want)
		}
	}
	if strings.Contains(starts[2], "--net") {
		t.Errorf("got %q, want no network of its own", starts[2])
	}
	for _, dir := range []string{"relative", "/a,b", "/a:b", "/"} {
		if sb, err := b.Open(t.Context(), sandbox.Spec{ID: "misplaced", Workdir: dir}); err == nil {
			t.Errorf("workdir %s: got %v", dir, sb)
		}
	}
}

func TestSettings(t *testing.T) {
	s := install(t)
	for _, tt := range []struct{ name, value, want string }{
		{"program", "/no/such/program", "setting program"},
		{"fakeroot", "maybe", "neither true nor false"},
		{"limits", "soft", "have hard, none"},
		{"image", "/no/such/image", "no such file"},
	} {
		settings := map[string]string{"program": s.Program, "image": s.Image, tt.name: tt.value}
		if b, err := sandbox.Open("singularity", sandbox.Options{StateDir: t.TempDir(), Settings: settings}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: got %v, %v, want %q", tt.name, tt.value, b, err, tt.want)
		}
	}
	b := open(t, s, map[string]string{"image": ""})
	if g := b.Guarantees(); g.Level != sandbox.LevelNone {
		t.Errorf("without a look inside: got %+v", g)
	}
	if _, err := b.Open(t.Context(), sandbox.Spec{ID: "none"}); err == nil || !strings.Contains(err.Error(), "no image") {
		t.Errorf("got %v", err)
	}
}

// runnerName is the name under which this test starts itself as a runner that is going to be killed.
const runnerName = "singularity-test-runner"

func init() { sandboxtest.Role(runnerName, runner) }

func runner(args []string) error {
	program, image, dir := args[0], args[1], args[2]
	b, err := sandbox.Open("singularity", sandbox.Options{StateDir: dir, Settings: map[string]string{"program": program, "image": image, "limits": "none"}})
	if err != nil {
		return err
	}
	for i := range 3 {
		sb, err := b.Open(context.Background(), sandbox.Spec{ID: fmt.Sprint("killed-", i)})
		if err == nil {
			_, err = sandbox.Run(context.Background(), sb, sandbox.Command{Args: []string{"sh", "-c", "setsid sleep 273.5 >/dev/null 2>&1 & mkdir shut && touch shut/f && chmod 0 shut"}}, sandbox.RunOptions{})
		}
		if err != nil {
			return err
		}
	}
	return sandboxtest.Ready()
}

func TestKilledRunner(t *testing.T) {
	s, dir := install(t), t.TempDir()
	c := sandboxtest.Runner(t, runnerName, s.Program, s.Image, dir)
	if swept, err := sandbox.Sweep(dir); err != nil || len(swept) != 0 {
		t.Errorf("sweep of the living: got %v, %v", swept, err)
	}
	list := func() string {
		out, err := exec.Command(s.Program, "instance", "list", "--json").Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if n := strings.Count(list(), "trajgen-"); n != 3 {
		t.Errorf("got %d instances, want 3", n)
	}
	sandboxtest.Kill(t, c)
	sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers("273.5") == 0 })
	if swept, err := sandbox.Sweep(dir); err != nil || len(swept) != 1 {
		t.Errorf("sweep: got %v, %v", swept, err)
	}
	if text := list(); strings.Contains(text, "trajgen-") {
		t.Errorf("instances left: %s", text)
	}
	if left, _ := filepath.Glob(dir + "/*-*"); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
}
