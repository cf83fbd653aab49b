package rollout_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// samples plays a task several times at once, and returns the episodes.
func samples(t *testing.T, n int, task episode.Task) []*episode.Episode {
	t.Helper()
	backend, err := sandbox.Open("native", sandbox.Options{StateDir: t.TempDir()})
	sandboxtest.Require(t, "native", err)
	defer backend.Close()
	task.ID, task.Prompt = "t", []episode.Message{{Role: "user", Content: "do it"}}
	player := &rollout.Player{Model: answering{}, Registry: table(t), Sandboxes: rollout.Sandboxes{Backend: backend, Samples: n}, Now: time.Now}
	eps := make([]*episode.Episode, n)
	var all sync.WaitGroup
	for i := range eps {
		ep := &episode.Episode{Key: episode.Key{Task: "t", Sample: i}, Toolsets: []string{"file"}, Attempt: 1}
		ep.ID = ep.Key.ID()
		eps[i] = ep
		all.Go(func() {
			if err := player.Play(t.Context(), &task, ep); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return eps
}

// answering is a model that says the same to everyone.
type answering struct{}

func (answering) Complete(context.Context, model.Request) (model.Reply, error) {
	return say("done")(model.Request{})
}

// stamp is a setup that differs each time it runs, and told is a check that says what the setup was.
const stamp = "od -An -N8 -tx8 /dev/urandom > stamp; echo once >> $HOME/times; "

var told = []episode.Check{{Command: "cat stamp $HOME/times; echo mine >> stamp", Reward: "exit"}}

func details(eps []*episode.Episode) (distinct map[string]int, forked int) {
	distinct = map[string]int{}
	for _, ep := range eps {
		if ep.Sandbox.Forked {
			forked++
		}
		if ep.Fault != nil {
			distinct[ep.Fault.Class]++
			continue
		}
		distinct[ep.Rewards[0].Detail]++
	}
	return distinct, forked
}

// TestSetupRunsOnce holds that samples of one task share its setup, and nothing else.
func TestSetupRunsOnce(t *testing.T) {
	eps := samples(t, 6, episode.Task{Setup: stamp, Verify: told})
	distinct, forked := details(eps)
	if len(distinct) != 1 || forked != 5 {
		t.Errorf("%d of 6 are forks and say %v, want 5 that say the same", forked, distinct)
	}
	for detail := range distinct {
		if strings.Contains(detail, "mine") || strings.Count(detail, "once") != 1 {
			t.Errorf("a sample says %q", detail)
		}
	}
}

// TestSetupThatCannotBeShared holds that what a setup leaves running is there in every sample.
func TestSetupThatCannotBeShared(t *testing.T) {
	check := []episode.Check{{Command: "pgrep -f 'sleep 600.5' || cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q 'sleep 600.5' && cat stamp"}}
	eps := samples(t, 3, episode.Task{Setup: stamp + "sleep 600.5 >/dev/null 2>&1 &", Verify: check})
	_, forked := details(eps)
	if forked != 0 {
		t.Errorf("%d are forks", forked)
	}
}

// TestSetupThatFails holds that a setup that fails is each sample's fault, and that it is not left half done.
func TestSetupThatFails(t *testing.T) {
	distinct, forked := details(samples(t, 4, episode.Task{Setup: stamp + "exit 3", Verify: told}))
	if forked != 0 || distinct["setup"] != 4 {
		t.Errorf("%d forks, %v", forked, distinct)
	}
}

// TestSetupSaysItsFirstError holds that what a setup prints behind its first error does not hide it.
func TestSetupSaysItsFirstError(t *testing.T) {
	eps := samples(t, 1, episode.Task{Setup: "seq 100; echo 'E: Unable to locate package nope'; no-such-program; seq 1000 2000; exit 3", Verify: told})
	if text := eps[0].Fault.Message; !strings.Contains(text, "status 3: E: Unable to locate package nope\n…") || !strings.HasSuffix(text, "\n2000") || len(text) > 1200 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// TestSetupOfOneSample holds that a single sample pays for no snapshot.
func TestSetupOfOneSample(t *testing.T) {
	distinct, forked := details(samples(t, 1, episode.Task{Setup: stamp, Verify: told}))
	if forked != 0 || len(distinct) != 1 {
		t.Errorf("%d forks, %v", forked, distinct)
	}
}
