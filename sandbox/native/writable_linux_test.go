package native_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestWritableKeepsSecrets holds that a writable system shows no file of the host that a read-only one does not: those of
// another user, with modes that keep others out.
func TestWritableKeepsSecrets(t *testing.T) {
	host := filepath.Join(t.TempDir(), "toolchain")
	closed := filepath.Join(host, "closed")
	err := errors.Join(
		os.MkdirAll(closed, 0o755), os.WriteFile(host+"/open", []byte("open\n"), 0o644), os.WriteFile(host+"/secret", []byte("secret\n"), 0o600),
		os.WriteFile(closed+"/file", []byte("secret\n"), 0o644), os.Chmod(closed, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	b := sandboxtest.Open(t, "native", sandbox.Options{HostPaths: []string{host}})
	read := "cd " + host + `; for f in open secret closed/file; do cat $f 2>/dev/null || echo no; done`
	want := sandboxtest.Sh(t, sandboxtest.Box(t, b, sandbox.Spec{ID: "fixed"}), read)
	if b.Guarantees().Isolation["ids"] != "single" && want != "open\nno\nno\n" {
		t.Errorf("a read-only system: got %q", want)
	}
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "writable", Writable: true})
	if got := sandboxtest.Sh(t, sb, read); got != want {
		t.Errorf("a writable system: got %q, want %q", got, want)
	}
	if !strings.Contains(want, "no") {
		return
	}
	took := "cd " + host + "; (chmod -R 777 secret closed; ln secret s; mv secret s; mv closed c; cp secret s; rm -rf closed; mkdir closed) 2>/dev/null; cat secret s c/file closed/file 2>/dev/null; touch new && rm -f open && ls"
	if got := sandboxtest.Sh(t, sb, took); got != "c\nclosed\nnew\nsecret\n" { // c is what mv made before it failed
		t.Errorf("after tricks: got %q", got)
	}
	for name := range map[string]bool{"open": true, "secret": true, "closed/file": true} {
		if _, err := os.Stat(filepath.Join(host, name)); err != nil {
			t.Errorf("on the host: %v", err)
		}
	}
}

// TestWritableOrdinaryUser does so as users without rights, with a range of ids and with a single one.
func TestWritableOrdinaryUser(t *testing.T) {
	for name, as := range map[string]func(*testing.T, ...string) string{
		"single": sandboxtest.AsOrdinaryUser, "ids": sandboxtest.AsUserWithIDs, "container": sandboxtest.AsRootOfContainer,
	} {
		t.Run(name, func(t *testing.T) {
			if out := as(t, "-test.run=^TestWritableKeepsSecrets$", "-test.v"); !strings.Contains(out, "--- PASS: TestWritableKeepsSecrets") {
				t.Errorf("it was not asked:\n%s", out)
			}
		})
	}
}
