package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWorkspace holds that a folder arrives whole: what is not a file, too.
func TestWorkspace(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "it's empty"), 0o755),
		os.MkdirAll(filepath.Join(dir, "sub/closed"), 0o700),
		os.WriteFile(filepath.Join(dir, "sub/run.sh"), []byte("#!/bin/sh\n"), 0o755),
		os.Symlink("sub/run.sh", filepath.Join(dir, "inside")),
		os.Symlink("/no/such", filepath.Join(dir, "sub/outside")),
		os.Symlink("loop", filepath.Join(dir, "loop")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, backend := range []string{"native", "local"} {
		t.Run(backend, func(t *testing.T) {
			got := succeed(t, "tools", "call", "terminal", `{"command":"find . -mindepth 1 -printf '%P %M %l;' | tr ';' '\\n' | sort"}`,
				"--workspace", dir, "--sandbox", backend)
			for _, want := range []string{
				"inside lrwxrwxrwx sub/run.sh", "it's empty drwxr-xr-x", "loop lrwxrwxrwx loop", "pipe prw", "sub/closed drwx------",
				"sub/outside lrwxrwxrwx /no/such", "sub/run.sh -rwxr-xr-x",
			} {
				if !strings.Contains(got.out, want) {
					t.Errorf("no %q in %s", want, got.out)
				}
			}
		})
	}
}
