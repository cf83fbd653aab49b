package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

func TestKilledRunner(t *testing.T) { sandboxtest.KilledRunner(t, "local", "170.5", true) }

// hidingName is the name under which this test starts itself as a runner whose sandbox holds daemons that hide.
const hidingName = "sandbox-test-hiding"

func init() { sandboxtest.Role(hidingName, hiding) }

// hiding leaves daemons behind that have lost their environment, or changed the mark in it.
func hiding(args []string) error {
	b, err := sandbox.Open("local", sandbox.Options{StateDir: args[0]})
	if err != nil {
		return err
	}
	sb, err := b.Open(context.Background(), sandbox.Spec{ID: "hiding"})
	if err != nil {
		return err
	}
	const marked = "until grep -q 'Max resident set *[0-9]' /proc/$$/limits; do sleep 0.01; done; "
	script := "env -i setsid sleep " + args[1] + " & TRAJGEN_SANDBOX=/elsewhere setsid sleep " + args[1] + " &"
	_, err = sandbox.Run(context.Background(), sb, sandbox.Command{Args: []string{"sh", "-c", marked + "(" + script + ") >/dev/null 2>&1"}}, sandbox.RunOptions{})
	return errors.Join(err, sandboxtest.Ready())
}

// What hid from its own runner is found by the sweep, also through a state directory that is a link.
func TestSweepFindsWhatHides(t *testing.T) {
	stateDir, seconds := filepath.Join(t.TempDir(), "link"), "171.25"
	if err := os.Symlink(t.TempDir(), stateDir); err != nil {
		t.Fatal(err)
	}
	c := sandboxtest.Runner(t, hidingName, stateDir, seconds)
	sandboxtest.Eventually(t, 30*time.Second, "two sleepers", func() bool { return sandboxtest.Sleepers(seconds) == 2 })
	sandboxtest.Kill(t, c)
	if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1 {
		t.Errorf("sweep: got %v, %v", swept, err)
	}
	sandboxtest.Eventually(t, 30*time.Second, "no sleeper", func() bool { return sandboxtest.Sleepers(seconds) == 0 })
}
