//go:build linux && !embedguest

package tools_test

import (
	"os/exec"
	"testing"
)

// TestEmbedded searches and reads again with the helper that lies in sandboxes when the whole was built by scripts/build.
func TestEmbedded(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	if out, err := exec.Command("../scripts/build-guest").CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, out)
	}
	c := exec.Command("go", "test", "-count=1", "-vet=off", "-tags=embedguest", "-run=^TestSearch|^TestReadFile", ".")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
