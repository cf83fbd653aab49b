package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"trajgen/sandbox"
)

// Where the engine's storage has no quotas, three things stand in for one: no file may be larger than the limit, which the
// kernel sees to; the engine measures every so often what was written, and past the limit all that runs is killed; and past
// twice the limit the container is ended.

const (
	// measurePause is how long the engine is left alone between two measurements at the least.
	measurePause = time.Second
	// measureShare is by how much longer than a measurement that is: podman looks at the whole image for one.
	measureShare = 20
	// measureTime bounds a measurement.
	measureTime = time.Minute
)

// room bounds what a container writes.
type room struct {
	box   *box
	limit int64
	full  atomic.Int64 // how often all was killed for it
	stop  context.CancelFunc
	over  chan struct{}
}

// bound begins to measure.
func (x *box) bound(limit int64) {
	ctx, cancel := context.WithCancel(context.Background())
	x.room = &room{box: x, limit: limit, stop: cancel, over: make(chan struct{})}
	go x.room.watch(ctx)
}

func (r *room) watch(ctx context.Context) {
	defer close(r.over)
	for pause := measurePause; ; {
		select {
		case <-time.After(pause):
		case <-r.box.relay.Done():
			return
		case <-ctx.Done():
			return
		}
		began := time.Now()
		written := r.measure(ctx)
		pause = max(measurePause, measureShare*time.Since(began))
		if written <= r.limit {
			continue
		}
		log := r.box.backend.logger.With("sandbox", r.box.id, "bytes", written, "limit", r.limit)
		r.full.Add(1)
		if written > 2*r.limit {
			log.Error("a sandbox wrote twice its limit of disk and is ended")
			r.box.relay.Abandon(fmt.Errorf("commands wrote %d MiB, over twice the limit of disk (%d MiB), and it was ended", written>>20, r.limit>>20))
			if _, err := r.box.backend.engine.ContainerKill(ctx, r.box.container, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
				log.Error("end it", "err", bounded(err))
			}
			continue
		}
		log.Info("a sandbox wrote more than its limit of disk: all that runs in it is killed")
		if err := r.box.Sandbox.KillAll(ctx); err != nil && !errors.Is(err, context.Canceled) {
			log.Error("kill it", "err", bounded(err))
		}
	}
}

// measure asks the engine for how much the container has written. It is 0 where the engine does not say: with one that is gone,
// so is the container.
func (r *room) measure(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	found, err := r.box.backend.engine.ContainerInspect(ctx, r.box.container, client.ContainerInspectOptions{Size: true})
	if err != nil || found.Container.SizeRw == nil {
		return 0
	}
	return *found.Container.SizeRw
}

// end stops measuring.
func (r *room) end() {
	if r != nil {
		r.stop()
		<-r.over
	}
}

// Start starts a command, whose end tells if it was killed for want of room.
func (x *box) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if x.room == nil {
		return x.Sandbox.Start(ctx, cmd)
	}
	before := x.room.full.Load()
	p, err := x.Sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	r := roomed{Process: p, room: x.room, before: before}
	if t, ok := p.(sandbox.Terminal); ok {
		return roomedTerminal{roomed: r, terminal: t}, nil
	}
	return r, nil
}

// roomed is a process in a bounded container.
type roomed struct {
	sandbox.Process
	room   *room
	before int64
}

func (r roomed) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit, err := r.Process.Wait(ctx)
	if err == nil && r.room.full.Load() > r.before && !slices.Contains(exit.Limits, sandbox.LimitDisk) {
		exit.Limits = append(slices.Clone(exit.Limits), sandbox.LimitDisk)
		slices.Sort(exit.Limits)
	}
	return exit, err
}

// roomedTerminal is one on a terminal.
type roomedTerminal struct {
	roomed
	terminal sandbox.Terminal
}

func (t roomedTerminal) Resize(ctx context.Context, size sandbox.TTY) error {
	return t.terminal.Resize(ctx, size)
}
