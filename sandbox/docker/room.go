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

// Without quotas in the engine's storage, three measures replace them: the kernel keeps each file below the limit; the engine
// measures regularly how much was written, and past the limit all processes are killed; past twice the limit the container is
// ended.

const (
	// measurePause is the least time between two measurements.
	measurePause = time.Second
	// measureShare is the pause after a measurement, as a multiple of its duration: podman reads the whole image for one.
	measureShare = 20
	// measureTime bounds a measurement.
	measureTime = time.Minute
)

// room limits how much a container writes.
type room struct {
	box     *box
	limit   int64
	started atomic.Int64 // commands
	full    atomic.Int64 // how often all processes were killed for it
	stop    context.CancelFunc
	over    chan struct{}
}

// bound starts the measurements.
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
		written := r.written(func() int64 { return r.measure(ctx) })
		pause = max(measurePause, measureShare*time.Since(began))
		if written <= r.limit {
			continue
		}
		log := r.box.backend.logger.With("sandbox", r.box.id, "bytes", written, "limit", r.limit)
		r.full.Add(1)
		if written > 2*r.limit {
			log.Error("a sandbox wrote twice its limit of disk and is ended")
			r.box.relay.Lose(fmt.Errorf("commands wrote %d MiB, over twice the limit of disk (%d MiB), and it was ended", written>>20, r.limit>>20))
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

// written measures, and again where a command has begun meanwhile: an earlier one may have made room, and no command is killed for
// what was there before it.
func (r *room) written(measure func() int64) (bytes int64) {
	const tries = 3
	for range tries {
		started := r.started.Load()
		if bytes = measure(); bytes <= r.limit || r.started.Load() == started {
			break
		}
	}
	return bytes
}

// measure asks the engine how much the container has written. It returns 0 without an answer: if the engine is gone, so is the
// container.
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

// Start starts a command, whose exit says if it was killed because the disk was full.
func (x *box) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Process, error) {
	if x.room == nil {
		return x.Sandbox.Start(ctx, cmd)
	}
	before := x.room.full.Load()
	x.room.started.Add(1)
	p, err := x.Sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, err
	}
	r := limitedProcess{Process: p, room: x.room, before: before}
	if t, ok := p.(sandbox.Terminal); ok {
		return limitedTerminal{limitedProcess: r, terminal: t}, nil
	}
	return r, nil
}

// limitedProcess is a process in such a container.
type limitedProcess struct {
	sandbox.Process
	room   *room
	before int64
}

func (r limitedProcess) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit, err := r.Process.Wait(ctx)
	if err == nil && r.room.full.Load() > r.before && !slices.Contains(exit.Limits, sandbox.LimitDisk) {
		exit.Limits = append(slices.Clone(exit.Limits), sandbox.LimitDisk)
		slices.Sort(exit.Limits)
	}
	return exit, err
}

// limitedTerminal is a process on a terminal in such a container.
type limitedTerminal struct {
	limitedProcess
	terminal sandbox.Terminal
}

func (t limitedTerminal) Resize(ctx context.Context, size sandbox.TTY) error {
	return t.terminal.Resize(ctx, size)
}
