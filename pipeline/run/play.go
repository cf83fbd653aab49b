package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
	"trajgen/sandbox"
)

// Play says how many episodes are played at once, how often, and when the run ends.
type Play struct {
	Workers           int          `yaml:"workers" experiment:"no" help:"episodes in play at once"`
	EpisodeRetries    int          `yaml:"episode_retries" experiment:"no" help:"plays again of an episode that ended in a model, tool or sandbox error"`
	MaxEpisodeRetries int          `yaml:"max_episode_retries,omitempty" experiment:"no" help:"plays again of all episodes of the run together, at most; beyond it an error outcome stands, for --retry-errors later (default: no limit)"`
	EpisodeRetryShare float64      `yaml:"episode_retry_share,omitempty" experiment:"no" help:"the same as a share of the run's episodes, such as 0.1 (default: no limit)"`
	DurableTurns      bool         `yaml:"durable_turns,omitempty" experiment:"no" help:"record each turn as it happens, so that after a crash, a cancelled run or a reached budget the episodes in play go on where they were: replies come from the record, tool calls are run again in a fresh sandbox and their results compared"`
	RetryErrors       bool         `yaml:"retry_errors" experiment:"no" help:"with --resume: play again what ended in an error outcome"`
	MaxErrorsInRow    int          `yaml:"max_errors_in_row" experiment:"no" help:"stop the run when episodes of so many tasks in a row end in the same error outcome; 0 never does"`
	MaxErrorShare     float64      `yaml:"max_error_share" experiment:"no" help:"share of error outcomes above which the exit code is 3"`
	JournalSegment    sandbox.Size `yaml:"journal_segment,omitempty" experiment:"no" help:"size at which the journal begins another file (default 64M)"`
	Preflight         string       `yaml:"preflight,omitempty" experiment:"no" help:"before the first token, prove tasks that have a reference solution and were not proven under these conditions: auto (default) warns of those that fail, must refuses to begin, off proves none"`
	ProofDir          string       `yaml:"proof_dir,omitempty" experiment:"no" help:"where proofs of tasks are kept (default: beside the images of this user)"`
}

// Validate says what is wrong with the section.
func (p Play) Validate() error {
	var errs []error
	if p.Workers == 0 {
		errs = append(errs, errors.New("play.workers (--workers) is 0; at least 1"))
	}
	if p.MaxErrorShare > 1 || p.EpisodeRetryShare > 1 {
		errs = append(errs, fmt.Errorf("max_error_share is %v and episode_retry_share %v; from 0 to 1", p.MaxErrorShare, p.EpisodeRetryShare))
	}
	if !slices.Contains([]string{"", PreflightAuto, PreflightMust, PreflightOff}, p.Preflight) {
		errs = append(errs, fmt.Errorf("preflight is %q; %s, %s or %s", p.Preflight, PreflightAuto, PreflightMust, PreflightOff))
	}
	return errors.Join(errs...)
}

// The values of Preflight.
const (
	PreflightAuto = "auto"
	PreflightMust = "must"
	PreflightOff  = "off"
)

// maxRetries is how often the run's episodes may be played again, all together; 0 sets none.
func (p Play) maxRetries(episodes int) int {
	most := p.MaxEpisodeRetries
	if p.EpisodeRetryShare > 0 {
		share := max(1, int(p.EpisodeRetryShare*float64(episodes)))
		if most == 0 || share < most {
			most = share
		}
	}
	return most
}

// Watch has the callbacks of a run, each of which may be nil.
type Watch struct {
	Observe func(pipeline.Event)
	Outage  func(open []model.Outage, news model.Outage)
	Drain   <-chan struct{} // closed when running episodes should finish and no other should begin
	Steps   *Steps          // nil plays the samples of each task
}

// Steps are tasks in the order in which they are played, each as often as it is to be played. The run file says so with Stepped.
type Steps struct {
	Tasks iter.Seq2[*episode.Task, error]
	Plan  func(task string) []pipeline.Planned // of pipeline.Config
	Begin func() <-chan struct{}               // closed when the step that was planned last may begin
}

// Play plays what the run lacks.
func (s *Run) Play(ctx context.Context, watch Watch) (pipeline.Summary, error) {
	e := s.Exp
	defer TuneGC(e.File.Play.Workers, e.Held, FreeMemory)()
	e.outages.shownBy(watch.Outage)
	defer e.outages.shownBy(nil)
	player := e.Player()
	player.Services, player.Recorder = s.Services, s.Recorder()
	cfg := pipeline.Config{
		Tasks: e.Playable(e.Source.Tasks(ctx)), Draw: e.Draw, Seed: e.File.Seed, Samples: e.File.Samples, Run: s.Manifest.Fingerprint,
		Workers: e.File.Play.Workers, Retries: e.File.Play.EpisodeRetries, MaxRetries: e.File.Play.maxRetries(e.Tasks * e.File.Samples), Retried: s.journal.Retried(),
		RetryErrors: e.File.Play.RetryErrors, MaxErrorsInRow: e.File.Play.MaxErrorsInRow,
		Player: player, Journal: s, Room: e.Room, Drain: watch.Drain, Observe: watch.Observe, Logger: e.Logger,
	}
	if watch.Steps != nil {
		cfg.Tasks, cfg.Plan, cfg.Room = watch.Steps.Tasks, watch.Steps.Plan, watch.Steps.Begin
	}
	var summary pipeline.Summary
	var err error
	if e.File.Faults.Clean == "" {
		summary, err = pipeline.Run(ctx, cfg)
	}
	if err == nil && e.File.Faults.Twins && !summary.Drained {
		var twins pipeline.Summary
		twins, err = s.playTwins(ctx, cfg, player)
		summary = summary.And(twins)
	}
	if load := e.processors.Load(); load.Held > 0 {
		e.Logger.Info("requests waited for this machine's processors", "for", load.Held.Round(time.Second).String(), "requests_per_second", int(load.Rate))
	}
	if _, broke := errors.AsType[*budget.Reached](err); broke {
		err = e.broke() // with the final spending
	}
	return summary, err
}
