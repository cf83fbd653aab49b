//go:build linux && embedguest

package sandbox_test

import (
	"bytes"
	"debug/elf"
	"testing"

	"trajgen/sandbox"
)

// TestAgents reads what was packed for each architecture.
func TestAgents(t *testing.T) {
	for arch, want := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		content, err := sandbox.Agent(arch)
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		if file, err := elf.NewFile(bytes.NewReader(content)); err != nil || file.Machine != want {
			t.Errorf("%s: got %d bytes, %v, want a program for %v", arch, len(content), err, want)
		}
	}
}
