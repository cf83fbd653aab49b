package docker_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// engines are what scripts/engine starts, by the variable that leads there.
var engines = map[string]string{"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}

// options lead to an engine for tests.
func options(t testing.TB, name string) sandbox.Options {
	t.Helper()
	host, image := os.Getenv(engines[name]), os.Getenv("TRAJGEN_TEST_IMAGE")
	if host == "" || image == "" {
		sandboxtest.Require(t, name, errors.New("no engine for tests (scripts/engine starts one)"))
	}
	return sandbox.Options{StateDir: t.TempDir(), Settings: map[string]string{"host": host, "image": image}}
}

// each runs a test against every engine.
func each(t *testing.T, test func(t *testing.T, name string, opts sandbox.Options)) {
	for name := range engines {
		t.Run(name, func(t *testing.T) { test(t, name, options(t, name)) })
	}
}

func TestContract(t *testing.T) {
	each(t, func(t *testing.T, name string, _ sandbox.Options) {
		sandboxtest.Run(t, func(t testing.TB) sandbox.Backend { return sandboxtest.Open(t, name, options(t, name)) },
			sandboxtest.Caps{Lacks: map[string]string{
				"network full": "the engine's own network reaches what the engine's machine does, and says so",
			}})
	})
}

func run(t testing.TB, sb sandbox.Sandbox, script string) sandbox.Result {
	t.Helper()
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script}}, sandbox.RunOptions{Merge: true})
	if err != nil {
		t.Fatalf("run %q: %v", script, err)
	}
	return r
}

func TestNoEngine(t *testing.T) {
	for name := range engines {
		_, err := sandbox.Open(name, sandbox.Options{StateDir: t.TempDir(), Settings: map[string]string{"host": "unix:///nowhere/engine.sock"}})
		if err == nil || !strings.Contains(err.Error(), "reach the "+name+" engine at unix:///nowhere/engine.sock (is it running? the setting \"host\"") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestGuarantees(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		g := sandboxtest.Open(t, name, opts).Guarantees()
		t.Logf("%+v", g)
		if g.Backend != name || !g.Level.AtLeast(sandbox.LevelUser) || !g.Images || !g.Snapshots || g.FixedSystem {
			t.Errorf("got %+v", g)
		}
		for _, limit := range []string{"memory", "processes", "cpu", "files"} {
			if g.Limits[limit] != "hard" {
				t.Errorf("limit of %s: got %q, want hard", limit, g.Limits[limit])
			}
		}
	})
}

func TestGivenUp(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		b := sandboxtest.Open(t, name, opts)
		enough := errors.New("enough")
		sleep := []string{"sleep", "99"}
		services := []sandbox.Service{{Name: "a", Entrypoint: sleep}, {Name: "b", Entrypoint: sleep}, {Name: "c", Entrypoint: sleep}}
		for _, after := range []time.Duration{0, 10 * time.Millisecond, 60 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond, 900 * time.Millisecond} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), after, enough)
			if sb, err := b.Open(ctx, sandbox.Spec{ID: "given-up", Services: services}); err == nil {
				_ = sb.Close()
			}
			cancel()
		}
		engine := engineOf(t, opts)
		sandboxtest.Eventually(t, 30*time.Second, "no container", func() bool {
			containers, _, _ := made(t, engine)
			return containers == 0
		})
	})
}
