package sandboxtest

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"trajgen/sandbox"
)

// Holder is the role of a runner that will be killed: args are a backend, a state directory, how many seconds its daemons
// sleep, and how many sandboxes it holds.
const Holder = "sandboxtest-holder"

func init() {
	Role(Holder, func(args []string) error {
		count, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		b, err := sandbox.Open(args[0], sandbox.Options{StateDir: args[1]})
		if err != nil {
			return err
		}
		return Hold(b, count, args[2])
	})
}

// KilledRunner kills a runner of a backend of this machine, whose daemons sleep for a number of seconds, and checks that
// nothing is left of it; with sweeps, after a sweep. It returns the instance's name.
func KilledRunner(t *testing.T, backend, seconds string, sweeps bool) string {
	t.Helper()
	Open(t, backend, sandbox.Options{})
	stateDir, count := t.TempDir(), 20
	c := Runner(t, Holder, backend, stateDir, seconds, fmt.Sprint(count))
	if live, err := sandbox.List(stateDir); err != nil || len(live) != count || live[0].Owner != c.Process.Pid || live[0].Backend != backend || time.Since(live[0].Started) > time.Minute {
		t.Errorf("list: got %d, %v", len(live), err)
	}
	Eventually(t, 30*time.Second, "three sleepers in each", func() bool { return Sleepers(seconds) == 3*count })
	if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 0 {
		t.Errorf("sweep of the living: got %v, %v", swept, err)
	}
	instances := Instances(stateDir)
	Kill(t, c)
	if sweeps {
		if swept, err := sandbox.Sweep(stateDir); err != nil || len(swept) != 1 {
			t.Errorf("sweep: got %v, %v", swept, err)
		}
	}
	Eventually(t, 30*time.Second, "all processes gone", func() bool { return Sleepers(seconds) == 0 })
	Eventually(t, 30*time.Second, "no state left", func() bool { return len(Instances(stateDir)) == 0 })
	return filepath.Base(instances[0])
}

// Instances returns the directories of instances below a state directory.
func Instances(stateDir string) []string {
	names, _ := filepath.Glob(filepath.Join(stateDir, "*-*"))
	return names
}
