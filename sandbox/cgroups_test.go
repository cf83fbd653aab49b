//go:build linux

package sandbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// softMemory is a limit that does not hit the guest, which forks under it where no cgroup bounds the commands.
var softMemory int64 = 128 << 20

// TestCgroupVersions runs commands and bombs with each way of limiting, also where this machine would choose another.
// A version that has no controllers here still shows that forking into its groups works.
func TestCgroupVersions(t *testing.T) {
	for _, version := range []string{"v1", "v2", "none"} {
		t.Run(version, func(t *testing.T) {
			b := sandboxtest.Open(t, "native", sandbox.WithCgroups(sandbox.Options{}, version))
			g := b.Guarantees()
			t.Logf("%+v", g)
			if version == "none" && (g.Level != sandbox.LevelUser || g.Limits["memory"] != "soft" || len(g.Missing) == 0) {
				t.Errorf("got %+v, want less than strong, with a reason", g)
			}
			sb, err := b.Open(t.Context(), sandbox.Spec{ID: "limits", Limits: sandbox.Limits{Processes: 40, Memory: softMemory}})
			if err != nil {
				t.Fatal(err)
			}
			for _, bomb := range []string{"bomb() { bomb | bomb & }; bomb; sleep 0.5", "python3 -c 'x=bytearray(1<<29)'"} {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				_, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sh", "-c", bomb}}, sandbox.RunOptions{})
				cancel()
				if err != nil {
					t.Errorf("%s: %v", bomb, err)
				}
				if err := sb.KillAll(t.Context()); err != nil {
					t.Fatal(err)
				}
				r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"sh", "-c", "echo well; cat /proc/self/cgroup"}}, sandbox.RunOptions{})
				if err != nil || !strings.HasPrefix(string(r.Stdout.Bytes()), "well\n") {
					t.Errorf("after %s: got %q, %q, %v", bomb, r.Stdout.Bytes(), r.Stderr.Bytes(), err)
				}
			}
			if err := sb.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
