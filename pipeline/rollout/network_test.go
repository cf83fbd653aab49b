package rollout_test

import (
	"slices"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestNetwork holds that a task's network wins over the run's, and that only an allow list gets its targets.
func TestNetwork(t *testing.T) {
	tests := []struct {
		run       sandbox.Network
		task      string
		allow     []string // the task's
		want      sandbox.Network
		wantAllow []string
	}{
		{run: sandbox.NetworkLoopback, want: sandbox.NetworkLoopback},
		{run: sandbox.NetworkAllowlist, want: sandbox.NetworkAllowlist, wantAllow: []string{"example.org"}},
		{run: sandbox.NetworkLoopback, task: "allowlist", want: sandbox.NetworkAllowlist, wantAllow: []string{"example.org"}},
		{run: sandbox.NetworkAllowlist, task: "allowlist", allow: []string{"example.com"}, want: sandbox.NetworkAllowlist, wantAllow: []string{"example.com"}},
		{run: sandbox.NetworkAllowlist, task: "none", want: sandbox.NetworkNone},
	}
	for _, tt := range tests {
		backend := &sandboxtest.Scripted{}
		s := &script{steps: []func(model.Request) (model.Reply, error){call(episode.Call{ID: "c", Name: "touch", Arguments: `{"path":"a"}`}), say("x")}}
		_, err := play(t, s, episode.Task{Reach: episode.Reach{Network: tt.task, Allow: tt.allow}}, func(p *rollout.Player) {
			p.Sandboxes.Backend, p.Sandboxes.Spec.Network, p.Sandboxes.Spec.Allow = backend, tt.run, []string{"example.org"}
		})
		if err != nil || len(backend.Opened()) != 1 {
			t.Fatalf("%d sandboxes, %v", len(backend.Opened()), err)
		}
		if got := backend.Opened()[0].Spec; got.Network != tt.want || !slices.Equal(got.Allow, tt.wantAllow) {
			t.Errorf("run %q, task %q: got %q %v, want %q %v", tt.run, tt.task, got.Network, got.Allow, tt.want, tt.wantAllow)
		}
	}
}

// TestResources holds that what a task wants of its sandbox wins over the run's.
func TestResources(t *testing.T) {
	backend := &sandboxtest.Scripted{}
	s := &script{steps: []func(model.Request) (model.Reply, error){call(episode.Call{ID: "c", Name: "touch", Arguments: `{"path":"a"}`}), say("x")}}
	_, err := play(t, s, episode.Task{Resources: episode.Resources{Memory: 2 << 30, CPUs: 2}}, func(p *rollout.Player) {
		p.Sandboxes.Backend, p.Sandboxes.Spec.Limits = backend, sandbox.Limits{Memory: 1 << 30, Disk: 3 << 20, Processes: 9}
	})
	if err != nil || len(backend.Opened()) != 1 {
		t.Fatalf("%d sandboxes, %v", len(backend.Opened()), err)
	}
	want := sandbox.Limits{Memory: 2 << 30, CPUs: 2, Disk: 3 << 20, Processes: 9}
	if got := backend.Opened()[0].Spec.Limits; got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}
