package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/registry"
	"trajgen/scripts/bench/internal/bench"
)

// benchPlay plays a stage of the benchmark in this process.
type benchPlay struct {
	stage      bench.Stage
	setup      bench.Setup
	rate       float64 // episodes begun in a second; 0 is as fast as it goes
	leave      int     // episodes at the end that are left for a resume
	cpuProfile string
	memProfile string
}

func (b benchPlay) validate() error {
	err := b.setup.Validate()
	if !(b.rate >= 0) || b.leave < 0 || b.leave >= max(1, b.setup.Episodes) {
		err = errors.Join(err, fmt.Errorf("rate is %v and leave %d; not below 0, and leave below episodes (%d)", b.rate, b.leave, b.setup.Episodes))
	}
	return err
}

// run plays, and says what that took of this process.
func (b benchPlay) run(ctx context.Context) (bench.Played, error) {
	if b.stage.Loop {
		return b.loop(ctx)
	}
	if b.stage.NoCgroups {
		if err := bench.WithoutCgroups(); err != nil {
			return bench.Played{}, err
		}
	}
	return b.pipeline(ctx)
}

// loop plays the limit.
func (b benchPlay) loop(ctx context.Context) (bench.Played, error) {
	reg, err := run.NewRegistry(run.Default())
	if err != nil {
		return bench.Played{}, err
	}
	toolset, err := reg.Select(ctx, b.stage.Toolsets(), nil)
	if err != nil {
		return bench.Played{}, err
	}
	stop, err := b.profile()
	if err != nil {
		return bench.Played{}, err
	}
	played, err := bench.Loop{
		URLs: b.setup.URLs(b.stage.Script), Script: b.stage.Script, Schemas: toolset.Schemas(), Episodes: b.setup.Episodes,
		InFlight: b.setup.InFlight, Fork: b.stage.Fork, PromptBytes: b.setup.PromptBytes,
	}.Run(ctx)
	return played, errors.Join(err, stop(), b.heap())
}

// pipeline plays as trajgen run does, but for what the stage leaves out.
func (b benchPlay) pipeline(ctx context.Context) (_ bench.Played, err error) {
	file, err := b.runFile()
	if err != nil {
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
		if exp.Registry, err = withoutWork(ctx, exp.Registry, b.stage.Toolsets()); err != nil {
			return bench.Played{}, err
		}
	}
	player := exp.Player()
	if b.stage.NoopTools { // a guard of commands that do nothing would open a sandbox to look at
		player.Hooks = nil
	}
	cfg := pipeline.Config{
		Tasks: b.paced(exp.Playable(exp.Source.Tasks(ctx)), exp.Tasks-b.leave), Draw: exp.Draw, Seed: file.Seed, Samples: file.Samples,
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
	return b.play(ctx, cfg, store, exp.Tasks-b.leave, exp.Held)
}

// play runs the pipeline under the eyes of a meter.
func (b benchPlay) play(ctx context.Context, cfg pipeline.Config, store *run.Run, tasks int, held func() time.Duration) (bench.Played, error) {
	defer run.TuneGC(cfg.Workers, held, run.FreeMemory)()
	stop, err := b.profile()
	if err != nil {
		return bench.Played{}, err
	}
	var heap error
	meter := bench.NewMeter(tasks, func() { heap = b.heap() })
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

// runFile reads the run file as trajgen run does, and makes it first where it is missing.
func (b benchPlay) runFile() (run.File, error) {
	path := b.setup.RunFile()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := b.stage.Prepare(b.setup); err != nil {
			return run.File{}, err
		}
	}
	file := run.Default()
	if err := run.Decode(path, "a run file", &file); err != nil {
		return run.File{}, err
	}
	return file, file.Validate()
}

// withoutWork replaces the tools of toolsets by ones that do nothing.
func withoutWork(ctx context.Context, reg *registry.Registry, toolsets []string) (*registry.Registry, error) {
	toolset, err := reg.Select(ctx, toolsets, nil)
	if err != nil {
		return nil, err
	}
	var real []registry.Tool
	for _, name := range toolset.Names() {
		if tool, ok := reg.Tool(name); ok {
			real = append(real, tool)
		}
	}
	idle, err := bench.NoopTools(real)
	if err != nil {
		return nil, err
	}
	return reg.With(idle...)
}

// paced lets so many tasks through, and no sooner than they are to be begun.
func (b benchPlay) paced(tasks iter.Seq2[*episode.Task, error], most int) iter.Seq2[*episode.Task, error] {
	return func(yield func(*episode.Task, error) bool) {
		began, n := time.Now(), 0
		for task, err := range tasks {
			if n == most {
				return
			}
			if b.rate > 0 {
				time.Sleep(time.Until(began.Add(time.Duration(float64(n) / b.rate * float64(time.Second)))))
			}
			if n++; !yield(task, err) {
				return
			}
		}
	}
}

// profile begins to profile the CPU, where that was asked for.
func (b benchPlay) profile() (stop func() error, err error) {
	if b.cpuProfile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(b.cpuProfile)
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
func (b benchPlay) heap() error {
	if b.memProfile == "" {
		return nil
	}
	f, err := os.Create(b.memProfile)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
}

// forgetful is a journal that remembers nothing.
type forgetful struct{}

func (forgetful) Last(string) (pipeline.Record, bool) { return pipeline.Record{}, false }

func (forgetful) Append(context.Context, *episode.Episode) error { return nil }
