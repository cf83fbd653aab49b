//go:build linux && !embedguest

package sandbox_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// harmless are packages that do their work in sandboxes and know nothing else.
var harmless = []string{"trajgen/tools/internal/literals", "trajgen/tools/search", "trajgen/tools/page", "trajgen/tools/internal/chars", "trajgen/pipeline/reward/suspects"}

// TestSmallPrograms looks at what the programs are made of that sandboxes see or run.
func TestSmallPrograms(t *testing.T) {
	for _, program := range []string{"trajgen/sandbox/internal/sandboxd", "trajgen/cmd/sandboxhelper"} {
		c := exec.Command("go", "list", "-deps", program)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		deps := strings.Fields(string(out))
		if !slices.Contains(deps, "trajgen/sandbox/internal/guest") {
			t.Errorf("%s: got %v, want a guest among them", program, deps)
		}
		for _, dep := range deps {
			ours := strings.HasPrefix(dep, "trajgen/") && dep != program
			if ours && !strings.HasPrefix(dep+"/", "trajgen/sandbox/") && !slices.Contains(harmless, dep) {
				t.Errorf("%s holds %s, which an agent could read there", program, dep)
			}
		}
	}
}

// TestEmbedded kills and looks into a program that was built as scripts/build does, with the guest in it. The contract is
// asked of it by scripts/check-sandboxes.
func TestEmbedded(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	if out, err := exec.Command("../scripts/build-guest").CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, out)
	}
	c := exec.Command("go", "test", "-count=1", "-vet=off", "-tags=embedguest", "-run=^TestKilledRunner$|^TestKilledBroker$|^TestSealed$|^TestAgent", ".", "./native")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
