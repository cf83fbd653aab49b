package cron

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// Runner runs jobs. It is called from several goroutines.
type Runner interface {
	// Busy says that something which an earlier tick of the job started is still there.
	Busy(id string) bool
	// Run runs a job to its end. When ctx ends, it asks the job to end and waits for it.
	Run(ctx context.Context, tick Tick) Ended
}

// Daemon runs the jobs of a store when they are due.
type Daemon struct {
	Store  *Store
	Runner Runner
	AtOnce int // jobs that run at the same time
	Now    func() time.Time
	Logger *slog.Logger

	running sync.WaitGroup
	mu      sync.Mutex      // guards what follows
	begun   map[string]bool // ids of the jobs that run
	errs    []error
	freed   chan struct{} // has a value when a job has ended
}

// look is the longest that the daemon waits before it looks at the clock and at the store again: either may have changed.
const look = 2 * time.Second

// Run runs jobs until ctx ends, and then waits for those that run. A tick is begun once, whenever the daemon dies: it is on disk
// before it runs.
func (d *Daemon) Run(ctx context.Context) error {
	d.freed = make(chan struct{}, 1)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil && d.failed() == nil {
		wait, err := d.begin(ctx)
		if err != nil {
			d.fail(err)
			break
		}
		timer.Reset(min(look, wait))
		select {
		case <-timer.C:
		case <-d.freed:
		case <-ctx.Done():
		}
	}
	d.running.Wait()
	return d.failed()
}

// Once runs what is due now, and returns when it has ended.
func (d *Daemon) Once(ctx context.Context) error {
	d.freed = make(chan struct{}, 1)
	for began := d.Now(); ctx.Err() == nil && d.failed() == nil; {
		if _, err := d.begin(ctx); err != nil {
			d.fail(err)
		}
		t, err := d.Store.Read()
		next, any := t.Until()
		if err != nil || !any || next.After(began) {
			d.fail(err)
			break
		}
		select { // more jobs are due than run at once
		case <-d.freed:
		case <-ctx.Done():
		}
	}
	d.running.Wait()
	return d.failed()
}

// begin starts what is due, and returns the time until the next is.
func (d *Daemon) begin(ctx context.Context) (time.Duration, error) {
	d.mu.Lock()
	if d.begun == nil {
		d.begun = map[string]bool{}
	}
	begun := maps.Clone(d.begun)
	d.mu.Unlock()
	busy := func(id string) bool { return begun[id] || d.Runner.Busy(id) }
	room, now := d.AtOnce-len(begun), d.Now()
	t, err := d.Store.Read() // which most often is all that there is to do
	if err != nil {
		return 0, err
	}
	due, passed := t.Claim(now, room, busy)
	if len(due)+len(passed) > 0 {
		err = d.Store.Update(func(stored *Table) error {
			due, passed = stored.Claim(now, room, busy)
			t = *stored
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	for _, tick := range passed {
		d.Logger.Warn("job did not run", "job", tick.Job.Name, "tick", tick.At, "why", tick.Job.Last.Status)
	}
	for _, tick := range due {
		d.start(ctx, tick)
	}
	if next, any := t.Until(); any && next.After(now) {
		return next.Sub(now), nil
	}
	return look, nil // what is due waits for room
}

func (d *Daemon) start(ctx context.Context, tick Tick) {
	d.mu.Lock()
	d.begun[tick.Job.ID] = true
	d.mu.Unlock()
	d.Logger.Info("job begins", "job", tick.Job.Name, "tick", tick.At)
	d.running.Go(func() {
		ended := d.Runner.Run(ctx, tick)
		err := d.Store.Update(func(t *Table) error { t.End(tick.Job.ID, ended); return nil })
		d.Logger.Info("job ended", "job", tick.Job.Name, "tick", tick.At, "status", ended.Status, "exit", ended.Exit,
			"error", ended.Error)
		d.mu.Lock()
		delete(d.begun, tick.Job.ID)
		d.mu.Unlock()
		d.fail(err)
		select {
		case d.freed <- struct{}{}:
		default:
		}
	})
}

func (d *Daemon) fail(err error) {
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.errs = append(d.errs, err)
	}
}

func (d *Daemon) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.errs...)
}
