//go:build linux

package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"trajgen/sandbox"
)

// TestAgent starts the agent as a container would, as a file whose first argument is its path.
func TestAgent(t *testing.T) {
	program, err := sandbox.Agent(runtime.GOARCH)
	if err != nil || !bytes.HasPrefix(program, []byte("\x7fELF")) {
		t.Fatalf("got %d bytes, %v, want a program", len(program), err)
	}
	file := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(file, program, 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(file, "trajgen-helper", "no-such-helper").CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 127 || !strings.Contains(string(out), `unknown helper "no-such-helper"`) {
		t.Errorf("got %q, %v", out, err)
	}
	for _, arch := range []string{"amd64", "arm64", "mips"} {
		if program, err := sandbox.Agent(arch); (len(program) == 0) != (err != nil) || err != nil && !strings.Contains(err.Error(), "scripts/build") {
			t.Errorf("for %s: got %d bytes, %v", arch, len(program), err)
		}
	}
}
