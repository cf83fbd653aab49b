package datasets

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"trajgen/pipeline/episode"
)

// Tasks streams the chosen tasks, always in the same order and with the same ids. The first error ends the iteration: a
// *RowError for a broken row (unless Options.SkipBadRows), another error for a dataset that cannot be read, is empty or has
// no chosen task, or for a context that ended. Only a hash of each id stays in memory, and with a shuffle or a stratified sample
// some 20 bytes of each task, whose rows lie in scratch space meanwhile (see Choice.Scratch).
func (s *Source) Tasks(ctx context.Context) iter.Seq2[*episode.Task, error] {
	if s.choice.ordered() {
		return s.reordered(ctx)
	}
	return s.InOrder(ctx)
}

// InOrder streams the same tasks in the order of the dataset, which needs no scratch space.
func (s *Source) InOrder(ctx context.Context) iter.Seq2[*episode.Task, error] {
	reads := s.stream(ctx)
	if s.choice.ordered() {
		reads = s.planned(ctx)
	}
	return func(yield func(*episode.Task, error) bool) {
		for read, err := range reads {
			if !yield(read.task, err) {
				return
			}
		}
	}
}

// sequence is what a function hands on, and the error that it ends with. The function ends when yield returns false.
func sequence[T any](run func(yield func(T) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		going := true
		err := run(func(value T) bool {
			going = yield(value, nil)
			return going
		})
		if err != nil && going {
			var none T
			yield(none, err)
		}
	}
}

// kept streams the tasks that where and part leave.
func (s *Source) kept(ctx context.Context, left tally) iter.Seq2[readRow, error] {
	return sequence(func(yield func(readRow) bool) error {
		if err := s.knowsNames(ctx); err != nil {
			return err
		}
		for read, err := range s.usable(ctx, s.skip) {
			if err != nil {
				return err
			}
			if read.task.ID != read.given && s.options.OnRepeat != nil {
				s.options.OnRepeat(read.given)
			}
			left["read"]++
			if s.choice.condition != nil {
				holds, err := s.choice.condition.Match(RowValues(read.task))
				if err != nil {
					err = s.skip(read.row, read.task.Row, err.Error())
				}
				if err != nil {
					return err
				}
				if !holds {
					continue
				}
			}
			left["where"]++
			if len(s.choice.Parts) > 0 && !s.choice.inPart(read.given) {
				continue
			}
			left["part"]++
			if !yield(read) {
				return nil
			}
		}
		return nil
	})
}

// knowsNames refuses a condition about a name that no row has. Most often the first row has them all.
func (s *Source) knowsNames(ctx context.Context) error {
	if s.choice.condition == nil || s.knows.Load() {
		return nil
	}
	names := s.choice.condition.Names()
	if !names.Found() {
		for read, err := range s.usable(ctx, passedOn) {
			if err != nil {
				return nil // reading the tasks reports the error
			}
			if names.Add(RowValues(read.task)); names.Found() {
				break
			}
		}
	}
	if err := names.Err(); err != nil {
		return fmt.Errorf("dataset %s: where: %w", s.name, err)
	}
	s.knows.Store(true)
	return nil
}

// stream yields chosen tasks as they are read.
func (s *Source) stream(ctx context.Context) iter.Seq2[readRow, error] {
	return sequence(func(yield func(readRow) bool) error {
		left := tally{}
		at := 0
		for read, err := range s.kept(ctx, left) {
			if err != nil {
				return err
			}
			if s.choice.slice.ends(at) {
				break
			}
			at++
			if !s.choice.slice.has(at - 1) {
				continue
			}
			left["slice"]++
			left["max_tasks"]++
			if !yield(read) {
				return nil
			}
			if left["max_tasks"] == s.choice.max || s.choice.slice.ends(at) {
				break
			}
		}
		steps := s.choice.steps(left)
		if left["slice"] == 0 {
			return nothingLeft(s.name, steps)
		}
		s.report(steps)
		return nil
	})
}

func (s *Source) report(steps []Step) {
	if s.options.OnChosen != nil {
		s.options.OnChosen(slices.Clone(steps))
	}
}
