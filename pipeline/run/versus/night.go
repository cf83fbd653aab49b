package versus

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"trajgen/outputs/gate"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/pipeline/run/check"
)

// night plays the steps of a plan, some ahead, and judges them in their order; never in that in which they end, as slow plays fail more
// often than quick ones.
type night struct {
	plan  *gate.Plan
	steps []step
	arms  [2]*arm // base, candidate

	mu      sync.Mutex // guards what follows, and the arms' plays
	walk    *gate.Walk
	decided bool          // the walk is at its end
	clipped int           // rewards that were judged
	moved   chan struct{} // closed, and made anew, when a step was judged
	over    chan struct{} // closed when no other step is to begin
	ended   bool          // over is closed
}

// step is what both arms play: an ordinary sample of a task.
type step struct {
	task, sample int
	id           string
}

// arm is one side.
type arm struct {
	run   *run.Run        // nil where nothing is played
	tasks []*episode.Task // in the order of the dataset
	plays map[string]play // what has ended
	at    int             // step that is planned, from 0; of the planner

	fingerprint string
}

// again reports whether episodes that ended in an error are played again.
func (a *arm) again() bool { return a.run != nil && a.run.Exp.File.Play.RetryErrors }

func newNight(plan *gate.Plan, base, candidate *arm) *night {
	n := &night{plan: plan, arms: [2]*arm{base, candidate}, walk: plan.Walk(), moved: make(chan struct{}), over: make(chan struct{})}
	drawn := make([]int, len(plan.Tasks))
	for number := range plan.Budget / 2 {
		task := plan.Draw(number + 1)
		key := episode.Key{Seed: plan.Seed, Task: plan.Tasks[task], Sample: drawn[task]}
		n.steps = append(n.steps, step{task, key.Sample, key.ID()})
		drawn[task]++
	}
	return n
}

// judge goes on to the first step that is not finished. n.mu is held.
func (n *night) judge() {
	before := n.walk.Steps()
	for !n.decided {
		step := n.steps[n.walk.Steps()]
		base, ok := n.arms[0].plays[step.id]
		candidate, ok2 := n.arms[1].plays[step.id]
		if !ok || !ok2 {
			break
		}
		for _, p := range []play{base, candidate} {
			if p.clipped {
				n.clipped++
			}
		}
		n.decided = n.walk.Step(step.task, base.value, candidate.value) != "" || n.walk.Steps() == len(n.steps)
	}
	if n.decided {
		n.end()
	}
	if n.walk.Steps() > before {
		close(n.moved)
		n.moved = make(chan struct{})
	}
}

// end lets no other step begin. n.mu is held.
func (n *night) end() {
	if !n.ended {
		n.ended = true
		close(n.over)
	}
}

// play plays until the walk is at its end, and returns an error where that was not reached.
func (n *night) play(ctx context.Context, watch check.Watch) error {
	if n.decided {
		return nil
	}
	ctx, show, drain, end := watch(ctx, n.plan.Budget)
	defer end()
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-drain:
			n.mu.Lock()
			defer n.mu.Unlock()
			n.end()
		case <-ended:
		}
	})
	var arms sync.WaitGroup
	var errs [2]error
	for i, a := range n.arms {
		arms.Go(func() {
			_, errs[i] = a.run.Play(ctx, run.Watch{Drain: n.over, Steps: n.of(ctx, a), Observe: func(e pipeline.Event) {
				n.observe(a, e)
				if show != nil {
					show(e)
				}
			}})
			n.mu.Lock()
			defer n.mu.Unlock()
			if errs[i] != nil { // the other arm finishes what it has in play
				n.end()
			}
		})
	}
	arms.Wait()
	close(ended)
	wait.Wait()
	if n.decided {
		return nil
	}
	return cmp.Or(errors.Join(errs[:]...), check.ErrDrained)
}

// of is the steps for an arm.
func (n *night) of(ctx context.Context, a *arm) *run.Steps {
	return &run.Steps{
		Tasks: func(yield func(*episode.Task, error) bool) {
			for a.at = range n.steps {
				if !yield(a.tasks[n.steps[a.at].task], nil) {
					return
				}
			}
		},
		Plan:  func(string) []pipeline.Planned { return []pipeline.Planned{{Sample: n.steps[a.at].sample}} },
		Begin: func() <-chan struct{} { return n.begin(ctx, a, a.at) },
	}
}

// begin returns a channel that is closed when a step may begin: there are no more of them ahead of the walk than episodes are played
// at once, and the machine has room.
func (n *night) begin(ctx context.Context, a *arm, at int) <-chan struct{} {
	may := make(chan struct{})
	go func() {
		for {
			n.mu.Lock()
			near, moved := at < n.walk.Steps()+a.run.Exp.File.Play.Workers, n.moved
			n.mu.Unlock()
			if near {
				break
			}
			select {
			case <-moved:
			case <-n.over:
				return
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-a.run.Exp.Room():
			close(may)
		case <-n.over:
		case <-ctx.Done():
		}
	}()
	return may
}

// observe keeps what an episode came to.
func (n *night) observe(a *arm, e pipeline.Event) {
	if e.Kind != pipeline.EpisodeFinished {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a.plays[e.Episode.ID] = playOf(e.Episode, n.plan.Metric)
	n.judge()
}

// result is what the walk says.
func (n *night) result() *gate.Result {
	r := n.walk.Result(n.plan.Metric)
	r.Clipped, r.Base, r.Candidate = n.clipped, n.arms[0].fingerprint, n.arms[1].fingerprint
	return r
}
