package rollout_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/rollout"
	"trajgen/sandbox"
	_ "trajgen/sandbox/native"
)

// counted counts the sandboxes that are open.
type counted struct {
	sandbox.Backend
	open   atomic.Int64
	opened []sandbox.Spec
	refuse error  // for forks
	judges func() // is called when a command has started in a fork
}

type countedBox struct {
	sandbox.Snapshotter
	counted *counted
	fork    bool
	closed  atomic.Bool
}

func (c *counted) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if spec.From != nil && c.refuse != nil {
		return nil, c.refuse
	}
	sb, err := c.Backend.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	c.opened = append(c.opened, spec)
	return &countedBox{Snapshotter: sb.(sandbox.Snapshotter), counted: c, fork: spec.From != nil}, nil
}

func (b *countedBox) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	process, err := b.Snapshotter.Start(ctx, cmd)
	if b.fork && b.counted.judges != nil {
		b.counted.judges()
	}
	return process, err
}

func (b *countedBox) Close() error {
	if !b.closed.Swap(true) {
		b.counted.open.Add(-1)
	}
	return b.Snapshotter.Close()
}

// native counts the sandboxes of a native backend.
func native(t *testing.T) *counted {
	t.Helper()
	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	return &counted{Backend: backend}
}

// judged plays an agent that runs one command.
func judged(t *testing.T, backend *counted, command string, task episode.Task, edit ...func(*rollout.Player)) (*episode.Episode, error) {
	t.Helper()
	act := call(episode.Call{ID: "c", Name: "terminal", Arguments: `{"command": "` + command + `"}`})
	edit = append(edit, func(p *rollout.Player) { p.Sandboxes.Backend = backend })
	ep, err := playWith(t, steps(act, say("done")), task, []string{"terminal"}, edit...)
	if n := backend.open.Load(); n != 0 {
		t.Errorf("%d sandboxes are open after the episode", n)
	}
	return ep, err
}

// TestForkOfVerifier holds that each check judges what the agent left and meets nothing of another check, in a sandbox with a
// network and limits of its own.
func TestForkOfVerifier(t *testing.T) {
	t.Parallel()
	backend := native(t)
	ep, err := judged(t, backend, "echo work > a", episode.Task{
		Verifier: &episode.Verifier{Network: "none", Resources: episode.Resources{Memory: 64 << 20}},
		Verify: []episode.Check{
			{Name: "first", Command: "grep -q work a && rm a && test $(ls /sys/class/net | wc -l) -le 1"},
			{Name: "second", Command: "grep -q work a", Verifier: &episode.Verifier{}},
			{Name: "third", Command: "rm a", Verifier: &episode.Verifier{Sandbox: episode.VerifierSame}},
			{Name: "fourth", Command: "test ! -e a", Verifier: &episode.Verifier{Sandbox: episode.VerifierSame}},
		},
	})
	if err != nil || ep.Outcome != episode.Success {
		t.Fatalf("outcome %s, rewards %+v, %+v, %v", ep.Outcome, ep.Rewards, ep.Fault, err)
	}
	if len(backend.opened) != 3 {
		t.Fatalf("%d sandboxes were opened, want the agent's and two forks", len(backend.opened))
	}
	first, second := backend.opened[1], backend.opened[2]
	if first.Network != sandbox.NetworkNone || first.Limits.Memory != 64<<20 || second.Network != "" || second.Limits.Memory == 64<<20 {
		t.Errorf("the forks were opened with %+v and %+v", first, second)
	}
	if ep.Phases.Verify == 0 || ep.Sandbox.Forked {
		t.Errorf("phases %+v, sandbox %+v", ep.Phases, ep.Sandbox)
	}
}

// TestForkFails holds that a verifier without a sandbox says nothing of the agent.
func TestForkFails(t *testing.T) {
	t.Parallel()
	backend := native(t)
	backend.refuse = errors.New("no room")
	ep, err := judged(t, backend, "true", episode.Task{Verify: []episode.Check{{Command: "true"}}})
	if err != nil || ep.Outcome != episode.SandboxError || ep.Reward != nil || !strings.Contains(ep.Fault.Message, "no room") {
		t.Errorf("outcome %s, reward %v, %+v, %v", ep.Outcome, ep.Reward, ep.Fault, err)
	}
}

// TestForkIsCancelled holds that nothing is left of an episode that is cancelled while its verifier is at work.
func TestForkIsCancelled(t *testing.T) {
	t.Parallel()
	backend := native(t)
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	backend.judges = func() { cancel(stopped) }
	ep := &episode.Episode{Key: episode.Key{Task: "t"}, Attempt: 1}
	ep.ID = ep.Key.ID()
	player := &rollout.Player{Model: steps(say("done")), Registry: table(t), Now: time.Now, Sandboxes: rollout.Sandboxes{Backend: backend}}
	task := episode.Task{ID: "t", Prompt: []episode.Message{{Role: "user", Content: "x"}}, Verify: []episode.Check{{Command: "sleep 600"}}}
	if err := player.Play(ctx, &task, ep); !errors.Is(err, stopped) {
		t.Errorf("Play: %v, outcome %s, %+v", err, ep.Outcome, ep.Fault)
	}
	if n := backend.open.Load(); n != 0 {
		t.Errorf("%d sandboxes are open after the episode", n)
	}
}
