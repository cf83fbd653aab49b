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
