// Package sandboxtest is the contract of a sandbox as a test suite, and a scripted sandbox for other tests.
package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/sandbox"
)

// Caps says which required features a backend lacks.
type Caps struct {
	// Lacks are cases that are left out, with the reason.
	Lacks map[string]string
}

// Run tests a backend against the whole contract. Cases of isolation run only for backends whose Guarantees claim it. The
// calling process must have called sandbox.Init first.
func Run(t *testing.T, open func(testing.TB) sandbox.Backend, caps Caps) {
	backend := open(t)
	t.Cleanup(func() {
		if err := errors.Join(backend.Close(), backend.Close()); err != nil {
			t.Errorf("close the backend, twice: %v", err)
		}
	})
	t.Setenv("SANDBOXTEST_SECRET", secret)
	level := backend.Guarantees().Level
	cases := slices.Concat(commandCases, processCases, terminalCases, limitCases, idCases, fileCases, lifeCases, snapshotCases,
		folderCases, writableCases, serviceCases, isolationCases, networkCases, hostileCases, stockCases)
	for name := range caps.Lacks {
		if !slices.ContainsFunc(cases, func(c testCase) bool { return c.name == name }) {
			t.Errorf("there is no case %q to leave out", name)
		}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if reason, ok := caps.Lacks[c.name]; ok {
				t.Skip(reason)
			}
			if c.name == helperCase && small() {
				t.Skip("the built-in small program lacks the helper of this case; the tests of tools run its own")
			}
			if c.isolation && level == sandbox.LevelNone {
				t.Skip("the backend claims no isolation")
			}
			if claim := backend.Guarantees().Limits[c.limit]; c.limit != "" && claim != "hard" && (claim != "soft" || !c.soft) {
				t.Skipf("the backend's limit on %s is %s", c.limit, claim)
			}
			if c.fixed && !backend.Guarantees().FixedSystem {
				t.Skip("commands may change the system")
			}
			if c.writable && !backend.Guarantees().WritableSystem {
				t.Skip("commands cannot change the system")
			}
			if c.services && !backend.Guarantees().Services {
				t.Skip("the backend has no services")
			}
			if c.snapshots && !backend.Guarantees().Snapshots {
				t.Skip("the backend takes no snapshots")
			}
			c.check(&kit{hands: hands{t}, backend: backend})
		})
	}
}

// Require skips a test because a backend is missing; it fails the test when the environment variable REQUIRE_SANDBOXES, a
// comma-separated list, names the backend.
func Require(t testing.TB, name string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("REQUIRE_SANDBOXES"), ","), name) {
		t.Fatalf("sandbox %s is required: %v", name, err)
	}
	t.Skipf("sandbox %s cannot be had here: %v", name, err)
}

// secret is in the runner's environment and must not be in any command's.
const secret = "do-not-tell"

type testCase struct {
	name      string
	isolation bool   // for backends that claim some
	fixed     bool   // for backends where commands cannot change the system
	writable  bool   // for backends with Spec.Writable
	services  bool   // for backends with Spec.Services
	snapshots bool   // for backends with snapshots
	limit     string // for backends whose limit is hard
	soft      bool   // and for those whose limit is soft
	check     func(*kit)
}

// kit is what a case gets.
type kit struct {
	hands
	backend sandbox.Backend
	box     sandbox.Sandbox
}

// hands do something with any sandbox, and fail the test when that goes wrong.
type hands struct{ *testing.T }

var boxes atomic.Int64

// open opens a sandbox that is closed with the test.
func (k *kit) open(spec sandbox.Spec) sandbox.Sandbox {
	k.Helper()
	if spec.ID == "" {
		spec.ID = fmt.Sprintf("suite-%d", boxes.Add(1))
	}
	return Box(k, k.backend, spec)
}

// sb returns the sandbox of the case, which the first call opens.
func (k *kit) sb() sandbox.Sandbox {
	k.Helper()
	if k.box == nil {
		k.box = k.open(sandbox.Spec{})
	}
	return k.box
}

// run runs a command for at most 20 seconds.
func (k *kit) run(cmd sandbox.Command) sandbox.Result {
	k.Helper()
	return k.runIn(k.sb(), cmd, 20*time.Second)
}

func (k hands) runIn(sb sandbox.Sandbox, cmd sandbox.Command, limit time.Duration) sandbox.Result {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), limit)
	defer cancel()
	r, err := sandbox.Run(ctx, sb, cmd, sandbox.RunOptions{})
	if err != nil {
		k.Fatalf("run %q: %v", cmd.Args, err)
	}
	return r
}

func sh(script string) sandbox.Command {
	return sandbox.Command{Args: []string{"/bin/sh", "-c", own(script)}}
}

// naps are the sleep times by which cases recognise their processes.
var naps = regexp.MustCompile(`\b[67][0-9]\.[1-3]\b`)

// own makes the naps in a text unique to this test program: others may run the same cases on this machine at the same time.
func own(text string) string { return naps.ReplaceAllString(text, "${0}"+strconv.Itoa(os.Getpid())) }

// sh runs a script that must succeed, and returns what it printed.
func (k *kit) sh(script string) string {
	k.Helper()
	return k.shIn(k.sb(), script)
}

func (k hands) shIn(sb sandbox.Sandbox, script string) string {
	k.Helper()
	return Sh(k, sb, own(script))
}

func (k *kit) start(cmd sandbox.Command) sandbox.Process {
	k.Helper()
	for i, arg := range cmd.Args {
		cmd.Args[i] = own(arg)
	}
	p, err := k.sb().Start(k.Context(), cmd)
	if err != nil {
		k.Fatalf("start %q: %v", cmd.Args, err)
	}
	return p
}

func (k hands) wait(p sandbox.Process) sandbox.Exit {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), 20*time.Second)
	defer cancel()
	x, err := p.Wait(ctx)
	if err != nil {
		k.Fatalf("wait: %v", err)
	}
	return x
}

func (k *kit) write(files ...sandbox.FileWrite) {
	k.Helper()
	if err := k.sb().Files().Write(k.Context(), files...); err != nil {
		k.Fatalf("write: %v", err)
	}
}

func (k *kit) read(path string) string {
	k.Helper()
	data, _, err := k.sb().Files().Read(k.Context(), path, 0, 1<<30)
	if err != nil {
		k.Fatalf("read %s: %v", path, err)
	}
	return string(data)
}

func (k hands) killAll(sb sandbox.Sandbox) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), 20*time.Second)
	defer cancel()
	if err := sb.KillAll(ctx); err != nil {
		k.Fatalf("kill all: %v", err)
	}
}

// eventually waits for an effect of other processes, on a machine that may be busy.
func (k hands) eventually(what string, ok func() bool) {
	k.Helper()
	Eventually(k, 30*time.Second, what, ok)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %#v, want %#v", what, got, want)
	}
}
