package export

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

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

// Sink writes episodes in one format. One goroutine uses it. Nothing of what is written can be seen under its name
// before Commit, and an earlier export to the same place stands until then.
type Sink struct {
	target    target
	path      string
	imaging   imaging
	nests     bool
	trains    bool
	teaches   bool
	epochs    bool
	options   Options
	lost      notes
	failed    error
	committed bool
	closed    bool
}

// Write adds an episode, in dataset order. A *Refusal says that the format cannot carry this one, which is left out; after
// any other error the sink takes no more.
func (s *Sink) Write(ctx context.Context, ep *episode.Episode) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if s.failed != nil {
		return s.failed
	}
	if why := ep.Proof.Unsound(); why != "" && s.trains && !s.options.Unsound {
		return &Refusal{Reason: why}
	}
	if !s.options.Faulted && (s.teaches && faulted(ep) || (s.teaches || s.epochs) && ep.Twin != nil) {
		return &Refusal{Reason: "faults were planted into its calls, or it is a twin"}
	}
	err := finite(ep)
	shown := ep
	if err == nil {
		shown, err = s.pictured(ep)
	}
	if err == nil {
		err = s.target.add(shown)
	}
	if err == nil {
		s.remarkImages(ep)
	}
	if _, refused := errors.AsType[*Refusal](err); refused {
		return err
	}
	if err != nil {
		s.failed = fmt.Errorf("export episode %s: %w", ep.ID, err)
	}
	return s.failed
}

// faulted reports whether an episode is no ordinary one, as the run put faults into it or played it as a twin.
func faulted(tree *episode.Episode) bool {
	for ep := range tree.Tree() {
		if slices.ContainsFunc(ep.Calls, func(c episode.ToolCall) bool { return c.Planted != nil }) {
			return true
		}
	}
	return false
}

// parts are the episodes that a format is given one by one for a tree: all of it as one, where an episode can hold its subagents.
func (s *Sink) parts(tree *episode.Episode) iter.Seq[*episode.Episode] {
	return func(yield func(*episode.Episode) bool) {
		if s.nests || len(tree.Children) == 0 {
			yield(tree)
			return
		}
		for ep := range tree.Tree() {
			alone := *ep
			if alone.Children = nil; ep != tree && s.options.Set[childrenSetting] == childrenSkip {
				s.lost[noteSkipped]++
			} else if !yield(&alone) {
				return
			}
		}
	}
}

// The setting of formats in which an episode cannot hold its subagents.
const (
	childrenSetting = "children"
	childrenRows    = "rows"
	childrenSkip    = "skip"
	noteSkipped     = "subagents that were left out, as was asked for"
)

// finite refuses an episode whose reward is not a number: a format without rewards must not pass over one either.
func finite(tree *episode.Episode) error {
	for ep := range tree.Tree() {
		if ep.Reward != nil && (math.IsNaN(*ep.Reward) || math.IsInf(*ep.Reward, 0)) {
			return fmt.Errorf("its reward is %v, which is not a number", *ep.Reward)
		}
	}
	return nil
}

// Commit makes everything that was written durable, gives it its name and then removes what is left of an earlier export. It
// may be called once.
func (s *Sink) Commit() (files []FileInfo, err error) {
	switch {
	case s.failed != nil:
		return nil, fmt.Errorf("commit %s: it is not complete: %w", s.path, s.failed)
	case s.committed:
		return nil, fmt.Errorf("commit %s: it was committed before", s.path)
	}
	s.committed = true
	files, s.failed = s.target.finish()
	return files, s.failed
}

// Close frees what the sink holds. Without a Commit before it, it removes what was written. It may be called again.
func (s *Sink) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.target.close()
}
