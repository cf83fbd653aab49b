package docker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestDeepTrees leaves trees that an engine cannot remove, which has a limit of open files.
func TestDeepTrees(t *testing.T) {
	const trees = `import os
for top in "/workspace", "/tmp", "/usr/lib":
    os.chdir(top)
    for i in range(3000): os.mkdir("d"); os.chdir("d")`
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		b := sandboxtest.Open(t, name, opts)
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "deep"})
		if r := run(t, sb, "python3 -c '"+trees+"'"); r.Exit.Code != 0 {
			t.Fatalf("got %+v, %q", r.Exit, r.Stdout.Bytes())
		}
		if err := errors.Join(sb.Close(), b.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
		if containers, images, volumes := made(t, engineOf(t, opts)); containers+images+volumes != 0 {
			t.Errorf("left: %d containers, %d images and %d volumes", containers, images, volumes)
		}
	})
}

// TestManyFiles leaves so many files that removing them takes time, which Close does not wait for.
func TestManyFiles(t *testing.T) {
	const files = `import os
for d in range(20):
    os.mkdir(str(d))
    for i in range(1000): open(f"{d}/{i}", "w").close()`
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		b := sandboxtest.Open(t, name, opts)
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "many"})
		if r := run(t, sb, "python3 -c '"+files+"'"); r.Exit.Code != 0 {
			t.Fatalf("got %+v, %q", r.Exit, r.Stdout.Bytes())
		}
		began := time.Now()
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		t.Logf("closed after %v", time.Since(began))
		again := sandboxtest.Box(t, b, sandbox.Spec{ID: "many"})
		if r := run(t, again, "ls"); strings.TrimSpace(string(r.Stdout.Bytes())) != "" {
			t.Errorf("the next of that id: got %q", r.Stdout.Bytes())
		}
	})
}
