package run

import (
	"context"
	"errors"
	"time"

	"trajgen/pipeline"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
)

// Watch is who looks on while a run is played. What is nil is not called.
type Watch struct {
	Observe func(pipeline.Event)
	Outage  func(open []model.Outage, news model.Outage)
	Drain   <-chan struct{} // closed when running episodes are to finish and no other is to begin
}

// Play plays what the run lacks.
func (s *Run) Play(ctx context.Context, watch Watch) (pipeline.Summary, error) {
	e := s.Exp
	defer Thrift(e.File.Workers, e.Held, FreeMemory)()
	e.outages.shownBy(watch.Outage)
	defer e.outages.shownBy(nil)
	player := e.Player()
	player.Services, player.Steps = s.Services, s.Steps()
	cfg := pipeline.Config{
		Tasks: e.Playable(e.Source.Tasks(ctx)), Draw: e.Draw, Seed: e.File.Seed, Samples: e.File.Samples, Run: s.Manifest.Fingerprint,
		Workers: e.File.Workers, Retries: e.File.EpisodeRetries, MaxRetries: e.File.maxRetries(e.Tasks * e.File.Samples), Retried: s.journal.Retried(),
		RetryErrors: e.File.RetryErrors, MaxErrorsInRow: e.File.MaxErrorsInRow,
		Player: player, Journal: s, Room: e.Room, Drain: watch.Drain, Observe: watch.Observe, Logger: e.Logger,
	}
	summary, err := pipeline.Run(ctx, cfg)
	if load := e.processors.Load(); load.Held > 0 {
		e.Logger.Info("requests waited for this machine's processors", "for", load.Held.Round(time.Second).String(), "requests_per_second", int(load.Rate))
	}
	if _, broke := errors.AsType[*budget.Reached](err); broke {
		err = e.broke() // with what was spent in the end
	}
	return summary, err
}
