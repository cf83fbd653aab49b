package all_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"trajgen/sandbox/sandboxtest"
)

// TestInsideContainer asks native inside a container of docker that is let make namespaces, as its root and as an
// ordinary user.
func TestInsideContainer(t *testing.T) {
	image := os.Getenv("TRAJGEN_TEST_IMAGE")
	if image == "" || os.Getenv("DOCKER_HOST") == "" {
		sandboxtest.Require(t, "docker", errors.New("TRAJGEN_TEST_IMAGE and DOCKER_HOST are not set: scripts/engine start"))
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, user string }{{"root", "0:0"}, {"ordinary user", "1000:1000"}} {
		t.Run(tt.name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), "docker", "run", "--rm", "--network", "none", "--user", tt.user, "--env", "HOME=/tmp",
				"--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined", "--volume", program+":/all.test:ro",
				image, "/all.test", "-test.v", "-test.run=^TestContract$/^native$")
			out, err := c.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestContract/native/attempts") {
				t.Errorf("got %v\n%s", err, out)
			}
		})
	}
}
