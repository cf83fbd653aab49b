package pipeline_test

import (
	"context"
	"errors"
	"testing"

	"trajgen/pipeline"
)

// TestRoom lets one episode begin at a time, each once it was asked for.
func TestRoom(t *testing.T) {
	asked, began := make(chan chan struct{}), make(chan struct{}, 12)
	cfg := config(4, 8, succeed, &memory{})
	cfg.Room = func() <-chan struct{} {
		room := make(chan struct{})
		asked <- room
		return room
	}
	cfg.Observe = func(event pipeline.Event) {
		if event.Kind == pipeline.EpisodeStarted {
			began <- struct{}{}
		}
	}
	go func() {
		for n := range 12 {
			room := <-asked
			if len(began) > n {
				t.Errorf("%d episodes began in room for %d", len(began), n)
			}
			close(room)
		}
	}()
	if summary, err := pipeline.Run(t.Context(), cfg); err != nil || summary.Finished != 12 {
		t.Errorf("%d episodes, %v, want 12", summary.Finished, err)
	}
}

// TestNoRoom ends a run whose first episode waits to begin.
func TestNoRoom(t *testing.T) {
	reason := errors.New("enough")
	for _, want := range []error{nil, reason} {
		ctx, cancel := context.WithCancelCause(t.Context())
		drain := make(chan struct{})
		cfg := config(4, 8, succeed, &memory{})
		cfg.Drain, cfg.Room = drain, func() <-chan struct{} {
			if want == nil {
				close(drain)
			} else {
				cancel(want)
			}
			return nil
		}
		summary, err := pipeline.Run(ctx, cfg)
		if !errors.Is(err, want) || summary.Finished != 0 || summary.Drained != (want == nil) {
			t.Errorf("summary = %+v, %v, want no episode and %v", summary, err, want)
		}
		cancel(nil)
	}
}
