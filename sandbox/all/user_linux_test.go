package all_test

import (
	"strings"
	"testing"

	"trajgen/sandbox/sandboxtest"
)

// TestOrdinaryUser asks native as a user without any rights.
func TestOrdinaryUser(t *testing.T) {
	out := sandboxtest.AsOrdinaryUser(t, "-test.run=^TestContract$/^native$", "-test.v")
	if !strings.Contains(out, "--- PASS: TestContract/native/attempts") {
		t.Errorf("the contract was not asked:\n%s", out)
	}
}

// TestRootOfContainer asks native as root without the right to mount, which has to take user ids for sandboxes by itself.
func TestRootOfContainer(t *testing.T) {
	out := sandboxtest.AsRootOfContainer(t, "-test.run=^(TestContract|TestLentIDs)$/^native$", "-test.v")
	for _, want := range []string{"--- PASS: TestContract/native/attempts", "--- PASS: TestLentIDs/native"} {
		if !strings.Contains(out, want) {
			t.Errorf("not asked: %s\n%s", want, out)
		}
	}
}
