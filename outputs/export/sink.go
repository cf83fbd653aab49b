package export

import (
	"context"
	"errors"
	"fmt"
	"math"

	"trajgen/pipeline/episode"
)

// target is what a format does. The sink around it sees to contexts, to errors that are for good and to calls that come
// out of order.
type target interface {
	// add takes an episode. A *Refusal leaves it out; after any other error the target is closed.
	add(ep *episode.Episode) error
	// finish completes what was written and gives it its name. It is called once.
	finish() ([]FileInfo, error)
	// close frees what the target holds, and removes what was not finished. It is called once.
	close() error
}

// sink is the Sink of a target.
type sink struct {
	target
	path      string
	failed    error
	committed bool
	closed    bool
}

func (s *sink) Write(ctx context.Context, ep *episode.Episode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.failed != nil {
		return s.failed
	}
	err := finite(ep)
	if err == nil {
		err = s.add(ep)
	}
	if _, refused := errors.AsType[*Refusal](err); refused {
		return err
	}
	if err != nil {
		s.failed = fmt.Errorf("export episode %s: %w", ep.ID, err)
	}
	return s.failed
}

// finite refuses an episode whose reward is not a number: a format without rewards must not pass over one either.
func finite(ep *episode.Episode) error {
	if ep.Reward != nil && (math.IsNaN(*ep.Reward) || math.IsInf(*ep.Reward, 0)) {
		return fmt.Errorf("its reward is %v, which is not a number", *ep.Reward)
	}
	return nil
}

func (s *sink) Commit() ([]FileInfo, error) {
	switch {
	case s.failed != nil:
		return nil, fmt.Errorf("commit %s: it is not complete: %w", s.path, s.failed)
	case s.committed:
		return nil, fmt.Errorf("commit %s: it was committed before", s.path)
	}
	s.committed = true
	var files []FileInfo
	files, s.failed = s.finish()
	return files, s.failed
}

func (s *sink) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.close()
}

// Notes are those of the target, where it has any.
func (s *sink) Notes() []string {
	if teller, ok := s.target.(Teller); ok {
		return teller.Notes()
	}
	return nil
}

// Dropped are the episodes that the target left out in the end.
func (s *sink) Dropped() map[string]int {
	if dropper, ok := s.target.(Dropper); ok {
		return dropper.Dropped()
	}
	return nil
}
