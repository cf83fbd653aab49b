//go:build linux && embedguest

package native_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestSealed looks at what a guest runs: no file of this machine, and nothing that could be written.
func TestSealed(t *testing.T) {
	stateDir := t.TempDir()
	sb := sandboxtest.Box(t, sandboxtest.Open(t, "native", sandbox.Options{StateDir: stateDir}), sandbox.Spec{ID: "sealed"})
	live, err := sandbox.List(stateDir)
	if err != nil || len(live) != 1 {
		t.Fatalf("list: got %v, %v", live, err)
	}
	program := fmt.Sprintf("/proc/%d/exe", live[0].PID)
	if path, err := os.Readlink(program); err != nil || !strings.HasPrefix(path, "/memfd:") {
		t.Errorf("the guest runs %q, %v, want a memory file", path, err)
	}
	if file, err := os.OpenFile(program, os.O_WRONLY, 0); err == nil {
		defer file.Close()
		if _, err := file.WriteAt([]byte{0}, 0); err == nil {
			t.Error("the guest's program was written to")
		}
	}
	// What lies in the sandbox is the small program for helpers, not this one.
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	info, err := sb.Files().Stat(t.Context(), "/.trajgen")
	if err != nil || info.Size > 10<<20 || info.Size == self.Size() || info.Mode.Perm()&0o222 != 0 {
		t.Errorf("the visible program: got %+v, %v, want a small one", info, err)
	}
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"/.trajgen", "run"}}, sandbox.RunOptions{})
	if err != nil || r.Exit.Code != 2 {
		t.Errorf("run by its path: got %+v, %q, %v", r.Exit, r.Stderr.Bytes(), err)
	}
}
