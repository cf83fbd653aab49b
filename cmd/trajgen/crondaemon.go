package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/run"
	"trajgen/tools/cron"
)

func newCronDaemon(std stdio, open opens) *cobra.Command {
	var once bool
	var atOnce int
	cmd := &cobra.Command{
		Use: "daemon", Short: "Run jobs when they are due",
		Long: `Runs jobs when they are due until Ctrl-C, which it passes on to those that run before it waits for them; a second one ends
them. One daemon runs the jobs of a store; another one ends with exit code 8. What it does stands in log.jsonl in the store.

With --once it runs what is due and ends, for machines with a scheduler of their own.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if atOnce < 1 {
				return usage(fmt.Errorf("--at-once is %d; at least 1", atOnce))
			}
			store, err := open()
			if err != nil {
				return err
			}
			release, err := store.Own()
			if errors.Is(err, disk.ErrLocked) {
				return withCode(exitLocked, fmt.Errorf("another daemon runs the jobs in %s", store.Dir))
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, release()) }()
			log, err := os.OpenFile(filepath.Join(store.Dir, "log.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, log.Close()) }()
			asked, runner, stop := cronProcesses(cmd.Context(), store)
			defer stop()
			daemon := cron.Daemon{
				Store: store, Runner: runner, AtOnce: atOnce, Now: time.Now,
				Logger: slog.New(slog.NewMultiHandler(slog.NewTextHandler(std.err, nil), slog.NewJSONHandler(log, nil))),
			}
			if once {
				return daemon.Once(asked)
			}
			return daemon.Run(asked)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "run what is due, and end")
	cmd.Flags().IntVar(&atOnce, "at-once", 1, "jobs that run at the same time")
	return cmd
}

// cronProcesses runs jobs as processes, which the first signal asks to end and the second ends.
func cronProcesses(ctx context.Context, store *cron.Store) (asked context.Context, runner *cron.Processes, stop func()) {
	hurry, drain, restore := interruptible(ctx, io.Discard, nil)
	asked, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-drain:
			cancel()
		case <-asked.Done():
		}
	}()
	work := func(tick cron.Tick) (cron.Work, error) { return run.PromptWork(store, tick) }
	runner = &cron.Processes{Store: store, Hurry: hurry.Done(), Work: work, Message: run.DeliverMessage}
	return asked, runner, func() { cancel(); restore() }
}
