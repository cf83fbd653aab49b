package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// errInterrupted is the cause of a run that its user cancelled.
var errInterrupted = errors.New("interrupted")

// hangUpIgnored says that this process was started to ignore hang-ups, as by nohup. It is set before sandbox.Init, which resets
// ignored signals for children.
var hangUpIgnored = signal.Ignored(syscall.SIGHUP)

// endings are the signals that end a command in good order.
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !hangUpIgnored {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// ending does the work of a command that signals end: the first cancels it, and said is then its error; the second ends the process.
func ending(ctx context.Context, said string, work func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, endings()...)
	defer stop()
	context.AfterFunc(ctx, stop)
	err := work(ctx)
	if err != nil && ctx.Err() != nil {
		return withCode(exitInterrupted, errors.New(said))
	}
	return err
}

// interrupted does the work of a command that signals cancel, and whose own error says what became of it.
func interrupted(ctx context.Context, work func(context.Context) error) error {
	ctx, stop := signal.NotifyContext(ctx, endings()...)
	defer stop()
	err := work(ctx)
	if ctx.Err() != nil {
		return withCode(exitInterrupted, err)
	}
	return err
}

// interruptible turns signals into the two ways to end a run: the first closes drain, so that no new episode is started and those in
// play are finished; the second cancels the episodes in play. While paused, which may be nil, reports an outage, no episode would
// finish, so the first signal cancels.
func interruptible(ctx context.Context, w io.Writer, paused func() bool) (_ context.Context, drain <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	drained := make(chan struct{})
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, endings()...)
	done := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for count := 1; ; count++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if count == 1 && paused != nil && paused() {
				count = 2
				close(drained)
			}
			switch count {
			case 1:
				fmt.Fprintln(w, "finishing the episodes in play; interrupt again to cancel them")
				close(drained)
			case 2:
				fmt.Fprintln(w, "cancelling the episodes in play; they will be played on --resume")
				cancel(errInterrupted)
				signal.Stop(signals) // a third one ends the process
			}
		}
	})
	return ctx, drained, func() {
		signal.Stop(signals)
		close(done)
		wait.Wait()
		cancel(nil)
	}
}
