package docker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// runnerName is the name under which this test starts itself as a runner that is going to be killed.
const runnerName = "docker-test-runner"

func init() { sandboxtest.Role(runnerName, runner) }

// runner opens sandboxes with daemons in them, and a service beside each, says so and waits for its death.
func runner(args []string) error {
	name, stateDir, host, image, seconds := args[0], args[1], args[2], args[3], args[4]
	b, err := sandbox.Open(name, sandbox.Options{StateDir: stateDir, Settings: map[string]string{"host": host, "image": image}})
	if err != nil {
		return err
	}
	ctx := context.Background()
	for i := range 3 {
		service := sandbox.Service{Name: "beside", Entrypoint: []string{"sleep", seconds}}
		sb, err := b.Open(ctx, sandbox.Spec{ID: fmt.Sprintf("crash-%d", i), Services: []sandbox.Service{service}})
		if err != nil {
			return err
		}
		script := "setsid sleep " + seconds + " >/dev/null 2>&1 & sleep " + seconds + " >/dev/null 2>&1 & true"
		if _, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"sh", "-c", script}}, sandbox.RunOptions{}); err != nil {
			return err
		}
		if i == 0 {
			if err := sb.KillAll(ctx); err != nil {
				return err
			}
			if _, err := sb.(sandbox.Snapshotter).Snapshot(ctx); err != nil {
				return err
			}
		}
	}
	return sandboxtest.Ready()
}

// made counts what an engine holds of ours.
func made(t testing.TB, c *client.Client) (containers, images, volumes int) {
	t.Helper()
	ours := client.Filters{}.Add("label", "trajgen.instance")
	cs, err1 := c.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: ours})
	is, err2 := c.ImageList(t.Context(), client.ImageListOptions{Filters: ours})
	vs, err3 := c.VolumeList(t.Context(), client.VolumeListOptions{Filters: ours})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return len(cs.Items), len(is.Items), len(vs.Items)
}

// TestKilledRunner kills a runner and looks for what it leaves: no process for longer than 2 seconds, no container, and
// nothing at all after the next start.
func TestKilledRunner(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		living := sandboxtest.Open(t, name, sandbox.Options{StateDir: opts.StateDir, Settings: opts.Settings})
		sb := sandboxtest.Box(t, living, sandbox.Spec{ID: "living"})
		seconds := map[string]string{"docker": "181.5", "podman": "182.5"}[name]
		c := sandboxtest.Runner(t, runnerName, name, opts.StateDir, opts.Settings["host"], opts.Settings["image"], seconds)
		sandboxtest.Eventually(t, 30*time.Second, "two sleepers in two, and three services", func() bool { return sandboxtest.Sleepers(seconds) == 7 })
		if live, err := sandbox.List(opts.StateDir); err != nil || len(live) != 4 {
			t.Errorf("list: got %v, %v", live, err)
		}
		sandboxtest.Kill(t, c)
		engine := engineOf(t, opts)
		took := sandboxtest.Eventually(t, 30*time.Second, "all processes gone", func() bool { return sandboxtest.Sleepers(seconds) == 0 })
		t.Logf("all processes gone after %v", took)
		sandboxtest.Eventually(t, 30*time.Second, "all containers gone but the living", func() bool {
			containers, _, _ := made(t, engine)
			// Podman leaves those whose network services had to the sweep.
			return containers == 1 || name == "podman" && containers <= 4
		})
		if swept, err := sandbox.Sweep(opts.StateDir); err != nil || len(swept) != 1 || swept[0].Backend != name {
			t.Errorf("sweep: got %v, %v, want the dead one", swept, err)
		}
		// The volumes of the living hold its agent, and the read-only folder of its self-test.
		if containers, images, volumes := made(t, engine); containers != 1 || images != 1 || volumes != 2 {
			t.Errorf("left: %d containers, %d images and %d volumes, want those of the living: 1, 1 and 2", containers, images, volumes)
		}
		if r := run(t, sb, "echo alive"); string(r.Stdout.Bytes()) != "alive\n" {
			t.Errorf("the living: got %q", r.Stdout.Bytes())
		}
		if err := living.Close(); err != nil {
			t.Error(err)
		}
		if containers, images, volumes := made(t, engine); containers+images+volumes != 0 {
			t.Errorf("left of the living: %d containers, %d images and %d volumes", containers, images, volumes)
		}
	})
}

// TestSweepWithoutEngine keeps what cannot be removed now for the next time.
func TestSweepWithoutEngine(t *testing.T) {
	stateDir := t.TempDir()
	dead := filepath.Join(stateDir, "docker-12345")
	owner := `{"backend":"docker","pid":1,"settings":{"label":"nobody","host":"unix:///nowhere/engine.sock"}}`
	if err := errors.Join(os.Mkdir(dead, 0o700), os.WriteFile(dead+"/owner.json", []byte(owner), 0o600)); err != nil {
		t.Fatal(err)
	}
	if swept, err := sandbox.Sweep(stateDir); err == nil || !strings.Contains(err.Error(), "sweep docker-12345: reach the docker engine at unix:///nowhere/engine.sock") || len(swept) != 0 {
		t.Errorf("got %v, %v", swept, err)
	}
	if _, err := os.Stat(dead); err != nil {
		t.Errorf("the instance is forgotten: %v", err)
	}
}

// TestLostEngine cuts the connections to an engine.
func TestLostEngine(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		p := newProxy(t, opts)
		direct := engineOf(t, opts)
		settings := map[string]string{"host": "tcp://" + p.Listener.Addr().String(), "image": opts.Settings["image"]}
		b := sandboxtest.Open(t, name, sandbox.Options{StateDir: opts.StateDir, Settings: settings})
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "lost"})
		listed, err := direct.ContainerList(t.Context(), client.ContainerListOptions{Filters: client.Filters{}.Add("label", "trajgen.id=lost")})
		if err != nil || len(listed.Items) != 1 {
			t.Fatalf("got %v, %v", listed.Items, err)
		}
		process, err := sb.Start(t.Context(), sandbox.Command{Args: []string{"sleep", "183.5"}})
		if err != nil {
			t.Fatal(err)
		}
		// Podman waits for the end, and may find that the container has gone by itself meanwhile.
		if _, err := direct.ContainerKill(t.Context(), listed.Items[0].ID, client.ContainerKillOptions{}); err != nil && !strings.Contains(err.Error(), "no such container") {
			t.Fatal(err)
		}
		if _, err := process.Wait(t.Context()); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("wait: got %v, want ErrGone", err)
		}
		if _, err := sb.Files().Stat(t.Context(), "."); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("stat: got %v, want ErrGone", err)
		}
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		sandboxtest.Box(t, b, sandbox.Spec{ID: "lost"})
	})
}

func TestNetworks(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		b := sandboxtest.Open(t, name, opts)
		_, err := b.Open(t.Context(), sandbox.Spec{ID: "list", Network: sandbox.NetworkAllowlist, Allow: []string{"example.org"}})
		if err == nil || !strings.Contains(err.Error(), "native") {
			t.Errorf("allowlist: got %v, want a hint at the native backend", err)
		}
		says := func(b sandbox.Backend, what string) bool {
			return slices.ContainsFunc(b.Guarantees().Missing, func(m string) bool { return strings.HasPrefix(m, what) && strings.Contains(m, "native") })
		}
		if !says(b, "network allowlist: ") || says(b, "network full: ") || !slices.Contains(b.Guarantees().Network, sandbox.NetworkFull) {
			t.Errorf("got %+v", b.Guarantees())
		}
		settings := maps.Clone(opts.Settings)
		settings["network"] = "nowhere"
		without := sandboxtest.Open(t, name, sandbox.Options{StateDir: opts.StateDir, Settings: settings})
		if !says(without, `network full: the engine has no network "nowhere"`) || slices.Contains(without.Guarantees().Network, sandbox.NetworkFull) {
			t.Errorf("without a network: got %+v", without.Guarantees())
		}
		if _, err := without.Open(t.Context(), sandbox.Spec{ID: "full", Network: sandbox.NetworkFull}); err == nil || !strings.Contains(err.Error(), "is not offered") {
			t.Errorf("without a network: got %v", err)
		}
		full := sandboxtest.Box(t, b, sandbox.Spec{ID: "full", Network: sandbox.NetworkFull})
		// The default route has no destination.
		if r := run(t, full, "grep -q '^eth0[[:space:]]00000000' /proc/net/route"); r.Exit.Code != 0 {
			t.Errorf("full network: no route, %q", run(t, full, "cat /proc/net/route").Stdout.Bytes())
		}
	})
}

func TestOutOfMemory(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		sb := sandboxtest.Box(t, sandboxtest.Open(t, name, opts), sandbox.Spec{ID: "oom", Limits: sandbox.Limits{Memory: 64 << 20}})
		r := run(t, sb, "python3 -c 'x=[bytearray(1<<20) for _ in range(500)]'; echo and on")
		if !r.Exit.OOM || !strings.Contains(string(r.Stdout.Bytes()), "and on") {
			t.Errorf("got %+v, %q, want OOM", r.Exit, r.Stdout.Bytes())
		}
		if r := run(t, sb, "true"); r.Exit.OOM || len(r.Exit.Limits) > 0 {
			t.Errorf("the next one: got %+v", r.Exit)
		}
	})
}

// TestSharedMemory takes files of a file system in memory into a fork.
func TestSharedMemory(t *testing.T) {
	each(t, func(t *testing.T, name string, opts sandbox.Options) {
		b := sandboxtest.Open(t, name, opts)
		sb := sandboxtest.Box(t, b, sandbox.Spec{ID: "origin"})
		script := "cd /dev/shm && mkdir d && echo x > d/f && ln -s d/f l && chown 5:6 d/f && chmod 640 d/f && touch -d @1000000000 d/f d"
		if r := run(t, sb, script); r.Exit.Code != 0 {
			t.Fatalf("got %q", r.Stdout.Bytes())
		}
		s, err := sb.(sandbox.Snapshotter).Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		fork := sandboxtest.Box(t, b, sandbox.Spec{ID: "fork", From: s})
		look := "cd /dev/shm && cat l && readlink l && stat -c '%n %u %g %a %Y' d d/f && ls -A /tmp"
		want := "x\nd/f\nd 0 0 755 1000000000\nd/f 5 6 640 1000000000\n"
		for what, sb := range map[string]sandbox.Sandbox{"origin": sb, "fork": fork} {
			if r := run(t, sb, look); string(r.Stdout.Bytes()) != want {
				t.Errorf("%s: got %q, want %q", what, r.Stdout.Bytes(), want)
			}
		}
	})
}
