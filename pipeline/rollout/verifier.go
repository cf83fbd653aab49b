package rollout

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/sandbox"
)

// Own says how the checks of a task get sandboxes of their own, with all that the episode's sandbox has.
func (s *Sandboxes) Own(task *episode.Task, spec func() sandbox.Spec, end func(sandbox.Sandbox)) *reward.Own {
	g := s.known()
	return &reward.Own{
		Spec: spec, Task: task, Forks: g.Snapshots, Fixed: g.FixedSystem,
		Default: cmp.Or(task.Verifier, s.Verifier), Open: s.Backend.Open, Close: end, Build: s.Build,
		Before: func(ctx context.Context, look lookFunc) (reward.Suspects, error) {
			spec := spec()
			if task.Setup == "" {
				spec.Services = nil // they change none of its files
			}
			return s.before.of(task, spec, func() (found reward.Suspects, err error) {
				ctx, cancel := context.WithTimeout(ctx, setupTimeout)
				defer cancel()
				spec.ID += "-before"
				sb, err := s.Backend.Open(ctx, spec)
				if err != nil {
					return nil, err
				}
				defer end(sb)
				if task.Setup != "" {
					if err := Furnish(ctx, task, sb); err != nil {
						return nil, err
					}
				}
				return look(ctx, sb)
			})
		},
	}
}

type lookFunc = func(context.Context, sandbox.Sandbox) (reward.Suspects, error)

// befores are what was in sandboxes before an agent came. The zero value is ready.
type befores struct {
	mu    sync.Mutex
	kept  map[string]reward.Suspects
	order []string // the one made last at the end
}

// of returns what is kept, or finds it. Tasks without a setup that have their image in common have this in common, too: their files
// are known without it.
func (b *befores) of(task *episode.Task, spec sandbox.Spec, find func() (reward.Suspects, error)) (reward.Suspects, error) {
	name := fmt.Sprintf("%s in %q at %q, %t", spec.Image, spec.Workdir, spec.Env["PATH"], spec.Writable)
	if task.Setup != "" {
		name = "task " + task.ID
	}
	b.mu.Lock()
	found, ok := b.kept[name]
	b.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := find()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept == nil {
		b.kept = map[string]reward.Suspects{}
	}
	if _, ok := b.kept[name]; !ok {
		b.order = append(b.order, name)
	}
	b.kept[name] = found
	if len(b.order) > keptTasks {
		delete(b.kept, b.order[0])
		b.order = b.order[1:]
	}
	return found, nil
}
