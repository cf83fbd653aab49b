package native_test

import (
	"os"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestTimerSlack holds that commands sleep no longer than elsewhere: their guest may, and they are its children.
func TestTimerSlack(t *testing.T) {
	want, err := os.ReadFile("/proc/self/timerslack_ns")
	if err != nil {
		t.Fatal(err)
	}
	sb := sandboxtest.Box(t, sandboxtest.Open(t, "native", sandbox.Options{}), sandbox.Spec{ID: "slack"})
	if got := sandboxtest.Sh(t, sb, "cat /proc/self/timerslack_ns"); strings.TrimSpace(got) != strings.TrimSpace(string(want)) {
		t.Errorf("timer slack of a command = %s, want %s", got, want)
	}
}
