package singularity_test

import (
	"errors"
	"flag"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
	_ "trajgen/sandbox/singularity"
	"trajgen/sandbox/singularity/singularitytest"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	singularitytest.Main()
	os.Exit(m.Run())
}

// setting is what the contract is asked with, as who.
var settings = map[string]map[string]string{
	"fakeroot": {"fakeroot": "true", "limits": "none"},
	"plain":    {"limits": "none"},
}

func TestContract(t *testing.T) {
	for name, more := range settings {
		t.Run(name, func(t *testing.T) {
			caps := sandboxtest.Caps{Lacks: maps.Clone(singularitytest.Caps.Lacks)}
			if name == "plain" && os.Getuid() != 0 {
				caps.Lacks["the verifier's directory"] = "an agent that is not root inside cannot open what a command has shut"
			}
			s, err := singularitytest.Install(t)
			sandboxtest.Require(t, "apptainer", err)
			sandboxtest.Run(t, func(t testing.TB) sandbox.Backend {
				return open(t, s, more)
			}, caps)
		})
	}
}

func open(t testing.TB, s *singularitytest.Stand, more map[string]string) sandbox.Backend {
	t.Helper()
	settings := map[string]string{"program": s.Program, "image": s.Image}
	maps.Copy(settings, more)
	b, err := sandbox.Open("apptainer", sandbox.Options{StateDir: t.TempDir(), Settings: settings, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", b.Guarantees())
	return b
}

// TestOrdinaryUser runs the tests again as a user without any rights, as those of clusters are.
func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("is run by root")
	}
	dir, err := os.MkdirTemp("", "ordinary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o777), os.WriteFile(dir+"/test", program, 0o755), os.Chmod(dir+"/test", 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", dir+"/test", "-test.run="+*ordinary, "-test.v")
	c.Dir = "/"
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "GOCOVERDIR=")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestContract/") {
		t.Errorf("the contract was not asked:\n%s", out)
	}
}

var ordinary = flag.String("ordinary", "Test", "")
