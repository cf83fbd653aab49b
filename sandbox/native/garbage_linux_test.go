package native_test

import (
	"strconv"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestGuestGarbage lets the guest do much that leaves garbage behind, of which it must not keep more than a little: it
// collects by itself, between two commands.
func TestGuestGarbage(t *testing.T) {
	sb := sandboxtest.Box(t, sandboxtest.Open(t, "native", sandbox.Options{}), sandbox.Spec{ID: "garbage"})
	peak := func() int {
		t.Helper()
		kB, err := strconv.Atoi(strings.TrimSpace(sandboxtest.Sh(t, sb, "awk '/^VmHWM/ {print $2}' /proc/1/status")))
		if err != nil {
			t.Fatal(err)
		}
		return kB
	}
	const allowed = 48 << 10 // kB
	for _, tt := range []struct {
		what string
		do   func()
	}{
		{"sockets that it is asked for", func() {
			sandboxtest.Sh(t, sb, "exec python3 -c 'import socket\nfor i in range(100000): socket.socket().close()'")
		}},
		{"listings", func() {
			sandboxtest.Sh(t, sb, "mkdir d && cd d && seq 4000 | xargs touch")
			for range 300 {
				if _, err := sb.Files().List(t.Context(), "d"); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		before := peak()
		tt.do()
		if after := peak(); after-before > allowed {
			t.Errorf("%s: the guest grew from %d kB to %d kB", tt.what, before, after)
		}
	}
}
