//go:build linux && !embedguest

package sandbox_test

import (
	"os/exec"
	"testing"
)

// TestEmbedded asks the contract again of a program that was built as scripts/build does, with the guest in it.
func TestEmbedded(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	if out, err := exec.Command("../scripts/build-guest").CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, out)
	}
	c := exec.Command("go", "test", "-count=1", "-tags=embedguest", "-run=^(TestContract|TestKilledRunner)$/^native$|^TestKilledBroker$|^TestSealed$", ".")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
