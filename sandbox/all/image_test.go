//go:build linux

package all_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
	"trajgen/sandbox/sandboxtest"
)

// pictured is a backend whose default image is one that was unpacked.
type pictured struct {
	sandbox.Backend
	image string
}

func (p pictured) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if spec.Image == "" && spec.From == nil {
		spec.Image = p.image
	}
	return p.Backend.Open(ctx, spec)
}

func (p pictured) Guarantees() sandbox.Guarantees {
	g := p.Backend.Guarantees()
	g.FixedSystem = false
	return g
}

// TestContractImage asks native everything in an image: the root file system that TRAJGEN_TEST_ROOTFS names, a tarball.
func TestContractImage(t *testing.T) {
	sandboxtest.Run(t, openImage, sandboxtest.Caps{})
}

func openImage(t testing.TB) sandbox.Backend {
	t.Helper()
	rootfs := os.Getenv("TRAJGEN_TEST_ROOTFS")
	if rootfs == "" {
		sandboxtest.Require(t, "image", errors.New("TRAJGEN_TEST_ROOTFS names no tarball; scripts/engine makes one"))
	}
	store, err := images.Open(images.Options{Dir: t.TempDir(), Unprivileged: os.Getuid() != 0})
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.CloseLater(t, store)
	b, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir(), Images: store})
	sandboxtest.Require(t, "native", err)
	return pictured{b, "tar:" + rootfs}
}

// TestOrdinaryUserImage does so as a user without any rights.
func TestOrdinaryUserImage(t *testing.T) {
	if rootfs := os.Getenv("TRAJGEN_TEST_ROOTFS"); rootfs != "" {
		t.Setenv("TRAJGEN_TEST_ROOTFS", readable(t, rootfs))
	}
	out := sandboxtest.AsOrdinaryUser(t, "-test.run=^TestContractImage$", "-test.v")
	if !strings.Contains(out, "--- PASS: TestContractImage/attempts") && !strings.Contains(out, "--- SKIP: TestContractImage ") {
		t.Errorf("the contract was not asked:\n%s", out)
	}
}

// readable copies a file to where everybody can read it.
func readable(t *testing.T, path string) string {
	t.Helper()
	from, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(sandboxtest.OpenDir(t), "rootfs.tar"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Close(), os.Chmod(to.Name(), 0o644)); err != nil {
		t.Fatal(err)
	}
	return to.Name()
}
