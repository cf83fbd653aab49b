package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/scripts/bench/internal/bench"
)

// player plays a stage of the benchmark in this process, and says what that took of it.
type player struct {
	setup bench.Setup
	stage bench.Stage
}

func (b player) play(ctx context.Context) (bench.Played, error) {
	if !b.stage.Loop {
		return b.pipeline(ctx)
	}
	reg, err := run.NewRegistry(run.Default())
	if err != nil {
		return bench.Played{}, err
	}
	toolset, err := reg.Select(b.stage.Toolsets(), nil)
	if err != nil {
		return bench.Played{}, err
	}
	return bench.Loop{
		URLs: b.setup.URLs(b.stage.Script), Script: b.stage.Script, Schemas: toolset.Schemas(), Episodes: b.setup.Episodes,
		InFlight: b.setup.InFlight, Fork: b.stage.Fork, PromptBytes: b.setup.PromptBytes,
	}.Run(ctx)
}

// pipeline plays as trajgen run does, but for what the stage leaves out.
func (b player) pipeline(ctx context.Context) (_ bench.Played, err error) {
	file := run.Default()
	if err := run.Decode(b.setup.RunFile(), "a run file", &file); err != nil {
		return bench.Played{}, err
	}
	if err := file.Validate(); err != nil {
		return bench.Played{}, err
	}
	logs := &run.LateWriter{}
	logger := slog.New(slog.DiscardHandler)
	if b.stage.Journal {
		logger = slog.New(slog.NewJSONHandler(logs, nil))
	}
	exp, err := file.Open(ctx, os.Stderr, logger)
	if err != nil {
		return bench.Played{}, err
	}
	defer func() { err = errors.Join(err, exp.Close()) }()
	if b.stage.NoopTools {
		if exp.Registry, err = withoutWork(exp.Registry, b.stage.Toolsets()); err != nil {
			return bench.Played{}, err
		}
	}
	player := exp.Player()
	if b.stage.NoopTools { // a guard of commands that do nothing would open a sandbox to look at
		player.Hooks = nil
	}
	cfg := pipeline.Config{
		Tasks: b.paced(exp.Playable(exp.Source.Tasks(ctx))), Draw: exp.Draw, Seed: file.Seed, Samples: file.Samples,
		Workers: file.Play.Workers, Player: player, Journal: forgetful{}, Room: exp.Room, Logger: logger,
	}
	var store *run.Run
	if b.stage.Journal {
		if store, err = exp.Keep(ctx, file.OutDir(), false, logs); err != nil {
			return bench.Played{}, err
		}
		defer func() { err = errors.Join(err, store.CloseFiles()) }()
		cfg.Run, cfg.Journal = store.Manifest.Fingerprint, store
		player.Services, player.Recorder = store.Services, store.Recorder()
	}
	defer run.TuneGC(cfg.Workers, exp.Held, run.FreeMemory)()
	return b.measured(ctx, cfg, store)
}

// measured runs the pipeline under the eyes of a meter.
func (b player) measured(ctx context.Context, cfg pipeline.Config, store *run.Run) (bench.Played, error) {
	stop, err := b.profile()
	if err != nil {
		return bench.Played{}, err
	}
	var heap error
	meter := bench.NewMeter(b.setup.Episodes, func() { heap = b.heap() })
	var failed atomic.Pointer[episode.Episode]
	cfg.Observe = func(event pipeline.Event) {
		if event.Kind != pipeline.EpisodeFinished {
			return
		}
		if event.Episode.Outcome != episode.Success {
			failed.CompareAndSwap(nil, event.Episode)
		}
		meter.Ended()
	}
	began := time.Now()
	summary, err := pipeline.Run(ctx, cfg)
	if err == nil && b.stage.Full {
		_, err = store.Finish(ctx, summary, time.Since(began))
	}
	played := meter.Played()
	err = errors.Join(err, stop(), heap)
	if ep := failed.Load(); ep != nil {
		err = errors.Join(err, fmt.Errorf("episode %s of task %s ended in %s: what was measured is not what was meant: %+v", ep.ID, ep.Key.Task, ep.Outcome, ep.Fault))
	}
	return played, err
}

// withoutWork replaces the tools of toolsets by ones that do nothing.
func withoutWork(reg *registry.Registry, toolsets []string) (*registry.Registry, error) {
	toolset, err := reg.Select(toolsets, nil)
	if err != nil {
		return nil, err
	}
	idle, err := bench.NoopTools(toolset.Tools())
	if err != nil {
		return nil, err
	}
	return reg.With(idle...)
}

// paced lets tasks through no sooner than they are to be begun.
func (b player) paced(tasks iter.Seq2[*episode.Task, error]) iter.Seq2[*episode.Task, error] {
	if b.setup.Rate == 0 {
		return tasks
	}
	return func(yield func(*episode.Task, error) bool) {
		began, n := time.Now(), 0.0
		for task, err := range tasks {
			time.Sleep(time.Until(began.Add(time.Duration(n / b.setup.Rate * float64(time.Second)))))
			if n++; !yield(task, err) {
				return
			}
		}
	}
}

// profile begins to profile the CPU, where that was asked for.
func (b player) profile() (stop func() error, err error) {
	if b.setup.Profiles == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(filepath.Join(b.setup.Profiles, "cpu.pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// heap writes what is in memory, where that was asked for.
func (b player) heap() error {
	if b.setup.Profiles == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(b.setup.Profiles, "heap.pprof"))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

// forgetful is a journal that remembers nothing.
type forgetful struct{}

func (forgetful) Last(string) (pipeline.Record, bool) { return pipeline.Record{}, false }

func (forgetful) Append(context.Context, *episode.Episode) error { return nil }
