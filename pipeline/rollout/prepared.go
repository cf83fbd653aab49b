package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// prepared holds tasks whose setup has run, sealed, for the samples of them that are still to be played. The zero value
// is ready.
type prepared struct {
	mu    sync.Mutex
	tasks map[string]*preparation // by task
	order []string                // of tasks, the one begun last at the end
}

// keptTasks bounds how many are kept: samples of one task are played one after another, so there are never many.
const keptTasks = 32

// preparation is the setup of one task. What follows done is set when that is closed.
type preparation struct {
	done     chan struct{}
	left     int              // samples that may still come; guarded by the lock of prepared
	snapshot sandbox.Snapshot // nil when the task cannot be shared: its setup leaves processes running
	err      error            // the setup's own failure, which would be that of every sample
}

// errAgain means that who prepared the task gave up for reasons of its own.
var errAgain = errors.New("prepare again")

// join returns the preparation of a task, and whether it is the caller's to make. Everyone who joins calls leave.
func (p *prepared) join(task *episode.Task, samples int) (made *preparation, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made = p.tasks[task.ID]; made != nil {
		return made, false
	}
	if p.tasks == nil {
		p.tasks = map[string]*preparation{}
	}
	made = &preparation{done: make(chan struct{}), left: samples}
	p.tasks[task.ID] = made
	p.order = append(p.order, task.ID)
	if len(p.order) > keptTasks {
		p.drop(p.order[0])
	}
	return made, true
}

// finish says what came of a preparation.
func (p *prepared) finish(task *episode.Task, made *preparation, snapshot sandbox.Snapshot, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made.snapshot, made.err = snapshot, err
	close(made.done)
	if err != nil && p.tasks[task.ID] == made {
		p.drop(task.ID) // a later attempt may have better luck
	}
	if p.tasks[task.ID] != made {
		closeSnapshot(made)
	}
}

// leave is called when a sample has its sandbox, or will have none.
func (p *prepared) leave(task *episode.Task, made *preparation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if made.left--; made.left <= 0 && p.tasks[task.ID] == made {
		p.drop(task.ID)
	}
}

// drop forgets a task. It is called with the lock held.
func (p *prepared) drop(id string) {
	made := p.tasks[id]
	delete(p.tasks, id)
	p.order = slices.DeleteFunc(p.order, func(other string) bool { return other == id })
	select {
	case <-made.done:
		closeSnapshot(made)
	default: // finish will
	}
}

// closeSnapshot lets go of the files. Forks that were made of them keep theirs, and one that comes too late prepares anew.
func closeSnapshot(made *preparation) {
	if made.snapshot != nil {
		_ = made.snapshot.Close()
	}
}

// prepare returns a sandbox with the task's files in it and its setup done: a fork of the one that another sample has
// prepared, where there is one.
func (b *lazySandbox) prepare(ctx context.Context) (sandbox.Sandbox, error) {
	// What a setup does to services is in no snapshot.
	if b.task.Setup == "" || len(b.task.Services) > 0 || b.from.Samples < 2 || b.ep.Origin != nil || !b.from.known().Snapshots {
		return b.make(ctx)
	}
	for {
		sb, err := b.share(ctx)
		if !errors.Is(err, errAgain) {
			return sb, err
		}
	}
}

func (b *lazySandbox) share(ctx context.Context) (sandbox.Sandbox, error) {
	made, mine := b.from.prepared.join(b.task, b.from.Samples)
	defer b.from.prepared.leave(b.task, made)
	if mine {
		return b.seal(ctx, made)
	}
	began := b.now()
	select {
	case <-made.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b.ep.Phases.Setup = b.now().Sub(began)
	if made.err != nil {
		return nil, made.err
	}
	if made.snapshot == nil {
		return b.make(ctx)
	}
	spec := b.spec()
	spec.From, spec.Image, spec.Workdir = made.snapshot, "", ""
	sb, err := b.openSpec(ctx, spec)
	if err == nil {
		b.ep.Sandbox.Forked = true
	}
	return sb, err
}

// seal prepares the task for all, in the sandbox of this sample.
func (b *lazySandbox) seal(ctx context.Context, made *preparation) (sandbox.Sandbox, error) {
	var snapshot sandbox.Snapshot
	sb, err := b.make(ctx)
	if err == nil {
		if s, ok := sb.(sandbox.Snapshotter); ok {
			snapshot, err = s.Snapshot(ctx)
		}
		if errors.Is(err, sandbox.ErrBusy) {
			err = nil // what the setup left running cannot be shared
		}
		if err != nil {
			err = errors.Join(faulty(episode.SandboxError, "snapshot", err), sb.Close())
		}
	}
	shared := err
	if fault, ok := errors.AsType[*faultError](err); err != nil && (!ok || fault.Class != "setup") {
		shared = errAgain
	}
	b.from.prepared.finish(b.task, made, snapshot, shared)
	if err != nil {
		return nil, err
	}
	return sb, nil
}
