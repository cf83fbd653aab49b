package run_test

import (
	"testing"

	"trajgen/pipeline/run"
	"trajgen/tools"
)

// TestCallerPolicy has what could do harm asked about where there is a machine to lose.
func TestCallerPolicy(t *testing.T) {
	for backend, want := range map[string]string{
		"local": tools.PolicyApprove, "ssh": tools.PolicyApprove, "native": tools.PolicyRecord, "docker": tools.PolicyRecord, "modal": tools.PolicyRecord,
	} {
		if got := run.CallerPolicy("", backend).Mode; got != want {
			t.Errorf("with %s: got %s, want %s", backend, got, want)
		}
	}
}
