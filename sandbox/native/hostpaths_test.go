//go:build linux

package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestHostPaths shows a directory of the host inside one that commands can write to: nothing on the way to it can be
// moved, and what is beside it can be written.
func TestHostPaths(t *testing.T) {
	host := filepath.Join(t.TempDir(), "some", "toolchain") // below /tmp
	if err := os.MkdirAll(host, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(host+"/compiler", []byte("theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(host, "/tmp/") {
		t.Skipf("temporary directories are in %s", host)
	}
	b := sandboxtest.Open(t, "native", sandbox.Options{HostPaths: []string{host}})
	top := "/" + strings.Join(strings.Split(host, "/")[1:3], "/")
	for _, workdir := range []string{"", top, filepath.Dir(host), filepath.Dir(host) + "/work"} {
		sb, err := b.Open(t.Context(), sandbox.Spec{ID: "hosted", Workdir: workdir})
		if err != nil {
			t.Fatal(err)
		}
		script := "cd " + filepath.Dir(host) + " && touch beside && ! touch toolchain/x && ! mv toolchain else && ! mv ../some ../else && ! rm -rf ../some && ! mv " + top + " /tmp/else && cat " + host + "/compiler"
		r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"sh", "-c", script}}, sandbox.RunOptions{})
		if err != nil || r.Exit.Code != 0 || string(r.Stdout.Bytes()) != "theirs\n" {
			t.Errorf("workdir %q: got %+v, %q, %q, %v", workdir, r.Exit, r.Stdout.Bytes(), r.Stderr.Bytes(), err)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := b.Open(t.Context(), sandbox.Spec{ID: "inside", Workdir: host + "/work"}); err == nil {
		t.Error("the working directory may be read-only")
	}
}
