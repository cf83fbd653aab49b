//go:build linux

package native_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/native"
	"trajgen/sandbox/sandboxtest"
)

// softMemory is a limit that does not hit the guest, which forks under it where no cgroup bounds the commands.
var softMemory int64 = 128 << 20

// TestCgroupVersions runs commands and bombs with each way of limiting, also where this machine would choose another.
// A version that has no controllers here still shows that forking into its groups works.
func TestCgroupVersions(t *testing.T) {
	for _, version := range []string{"v1", "v2", "none"} {
		t.Run(version, func(t *testing.T) {
			b := try(t, native.Trial{Cgroups: version}, t.TempDir())
			g := b.Guarantees()
			t.Logf("%+v", g)
			if version == "none" && (g.Level != sandbox.LevelUser || g.Limits["memory"] != "soft" || len(g.Missing) == 0) {
				t.Errorf("got %+v, want less than strong, with a reason", g)
			}
			says := slices.ContainsFunc(g.Missing, func(m string) bool { return strings.Contains(m, "memfd_create") })
			if says != (g.Limits["memory"] == "soft") {
				t.Errorf("the limit of memory is %s, and what it lacks is %q", g.Limits["memory"], g.Missing)
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

// TestMachineOutOfMemory takes memory from a sandbox that keeps within its own limit: what is killed then says nothing of
// that. A limit of the group that all sandboxes are in stands for the machine's end.
func TestMachineOutOfMemory(t *testing.T) {
	dir := t.TempDir()
	b := sandboxtest.Open(t, "native", sandbox.Options{StateDir: dir})
	if b.Guarantees().Limits[sandbox.LimitMemory] != "hard" {
		t.Skip("no cgroup limits memory here")
	}
	sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "machine", Limits: sandbox.Limits{Memory: 512 << 20}})
	bomb := sandbox.Command{Args: []string{"python3", "-c", "x = bytearray(300 << 20)"}}
	if r, err := sandbox.Run(t.Context(), sb, bomb, sandbox.RunOptions{}); err != nil || r.Exit.Code != 0 || len(r.Exit.Limits) > 0 {
		t.Fatalf("with enough memory: %+v, %v", r.Exit, err)
	}
	limited := 0
	for _, group := range groups(t, dir) {
		for _, name := range []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swap.max", "memory.max"} {
			limit := "134217728"
			if name == "memory.swap.max" {
				limit = "0"
			}
			if os.WriteFile(filepath.Join(group, name), []byte(limit), 0) == nil {
				limited++
			}
		}
	}
	if limited == 0 {
		t.Fatal("there is no group to limit")
	}
	r, err := sandbox.Run(t.Context(), sb, bomb, sandbox.RunOptions{})
	if err != nil || r.Exit.Signal != 9 || r.Exit.OOM || !slices.Equal(r.Exit.Limits, []string{sandbox.LimitMachine}) {
		t.Errorf("without: %+v, %v, want it killed by %s", r.Exit, err, sandbox.LimitMachine)
	}
}

// groups are the directories of a backend in the trees of cgroups.
func groups(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*/owner.json")
	if err != nil || len(files) != 1 {
		t.Fatalf("owners in %s: %q, %v", dir, files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var owner struct {
		Cgroups []string `json:"cgroups"`
	}
	if err := json.Unmarshal(content, &owner); err != nil {
		t.Fatal(err)
	}
	return owner.Cgroups
}
