package all_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestUserWithIDs asks native as an ordinary user to whom the system lends a range of user ids.
func TestUserWithIDs(t *testing.T) {
	_, err := exec.LookPath("newuidmap")
	sandboxtest.Require(t, "native", err)
	out := sandboxtest.AsUserWithIDs(t, "-test.run=^(TestContract|TestLentIDs)$/^native$", "-test.v")
	for _, want := range []string{"--- PASS: TestContract/native/attempts", "--- PASS: TestContract/native/setuid_programs", "--- PASS: TestLentIDs/native"} {
		if !strings.Contains(out, want) {
			t.Errorf("not asked: %s\n%s", want, out)
		}
	}
	if out := sandboxtest.AsOrdinaryUser(t, "-test.run=^TestLentIDs$/^native$", "-test.v"); !strings.Contains(out, "--- SKIP: TestLentIDs/native") {
		t.Errorf("without any: got\n%s", out)
	}
	if os.Getenv("TRAJGEN_TEST_ROOTFS") == "" {
		return
	}
	t.Setenv("TRAJGEN_TEST_ROOTFS", readable(t, os.Getenv("TRAJGEN_TEST_ROOTFS")))
	out = sandboxtest.AsUserWithIDs(t, "-test.run=^(TestContractImage|TestLentIDs)$", "-test.v")
	for _, want := range []string{"--- PASS: TestContractImage/attempts", "--- PASS: TestLentIDs/image"} {
		if !strings.Contains(out, want) {
			t.Errorf("not asked: %s\n%s", want, out)
		}
	}
}

// lentScript fails unless files can be given away and users be taken on.
const lentScript = `set -e
touch f; chown 7:65534 f; [ "$(stat -c %u:%g f)" = 7:65534 ]
[ "$(setpriv --reuid=1000 --regid=1000 --groups=4,5 sh -c 'id -u; id -G; touch /tmp/theirs; stat -c %u /tmp/theirs' | tr '\n' ' ')" = "1000 1000 4 5 1000 " ]
! setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'echo x > f' 2>/dev/null
mkdir tree && tar --owner=9 --group=10 -cf tree.tar tree && rm -r tree && tar -xpf tree.tar && [ "$(stat -c %u:%g tree)" = 9:10 ]
echo well`

// debScript makes a package and installs it.
const debScript = `set -e
mkdir -p p/DEBIAN p/opt/p && echo x > p/opt/p/f && chown 33:33 p/opt/p/f
printf 'Package: p\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: p\n' > p/DEBIAN/control
dpkg-deb -b p p.deb >/dev/null && dpkg -i p.deb >/dev/null && [ "$(stat -c %u /opt/p/f)" = 33 ]
echo well`

// TestLentIDs is run by TestUserWithIDs and TestRootOfContainer.
func TestLentIDs(t *testing.T) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if err := unix.Capget(&header, &rights[0]); err != nil {
		t.Fatal(err)
	}
	if rights[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0 {
		t.Skip("is for users who may not mount")
	}
	t.Run("native", func(t *testing.T) {
		b := open(t, "native")
		defer b.Close()
		g := b.Guarantees()
		t.Logf("%+v", g)
		hard := g.Limits["memory"] == "hard" && g.Limits["processes"] == "hard"
		if g.Isolation["ids"] == "single" {
			says := func(m string) bool {
				return strings.HasPrefix(m, "a range of user ids: /etc/sub") && strings.Contains(m, ": add the line nobody:")
			}
			if !slices.ContainsFunc(g.Missing, says) {
				t.Errorf("got %q, want what to do about it", g.Missing)
			}
			t.Skip("nothing is lent to this user")
		}
		if g.Isolation["ids"] != "shifted" || hard != (g.Level == sandbox.LevelStrong) {
			t.Errorf("got level %s, ids %s, limits %v", g.Level, g.Isolation["ids"], g.Limits)
		}
		lives(t, b, lentScript)
	})
	t.Run("image", func(t *testing.T) {
		b := openImage(t)
		defer b.Close()
		lives(t, b, strings.TrimSuffix(lentScript, "echo well")+debScript)
	})
}

// lives runs a script in a sandbox and in forks of it.
func lives(t *testing.T, b sandbox.Backend, script string) {
	t.Helper()
	sb, err := b.Open(t.Context(), sandbox.Spec{ID: "parent"})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	run := func(sb sandbox.Sandbox, script string) {
		t.Helper()
		r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script}}, sandbox.RunOptions{})
		if err != nil || !strings.HasSuffix(string(r.Stdout.Bytes()), "well\n") {
			t.Errorf("got %+v, %q, %q, %v", r.Exit, r.Stdout.Bytes(), r.Stderr.Bytes(), err)
		}
	}
	run(sb, script)
	snapshot, err := sb.(sandbox.Snapshotter).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	for _, id := range []string{"fork-1", "fork-2"} {
		fork, err := b.Open(t.Context(), sandbox.Spec{ID: id, From: snapshot})
		if err != nil {
			t.Fatal(err)
		}
		defer fork.Close()
		run(fork, `[ "$(stat -c %u:%g f)" = 7:65534 ] && chown 8 f && echo more >> f && rm -r tree && echo well`)
	}
	run(sb, `[ "$(stat -c %u:%g f tree | tr '\n' ' ')" = "7:65534 9:10 " ] && echo well`)
}
