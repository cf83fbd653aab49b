package datasets

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"trajgen/pipeline/episode"
)

func (s *source) Tasks(ctx context.Context) iter.Seq2[*episode.Task, error] {
	if s.choice.ordered() {
		return s.reordered(ctx)
	}
	return s.InOrder(ctx)
}

func (s *source) InOrder(ctx context.Context) iter.Seq2[*episode.Task, error] {
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
func (s *source) kept(ctx context.Context, left tally) iter.Seq2[readRow, error] {
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
				holds, err := s.choice.condition.Match(rowValues(read.task))
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
func (s *source) knowsNames(ctx context.Context) error {
	if s.choice.condition == nil || s.knows.Load() {
		return nil
	}
	names := s.choice.condition.Names()
	if !names.Found() {
		for read, err := range s.usable(ctx, passedOn) {
			if err != nil {
				return nil // reading the tasks reports the error
			}
			if names.Add(rowValues(read.task)); names.Found() {
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
func (s *source) stream(ctx context.Context) iter.Seq2[readRow, error] {
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

func (s *source) report(steps []Step) {
	if s.options.OnChosen != nil {
		s.options.OnChosen(slices.Clone(steps))
	}
}

// plan is an order that was drawn.
type plan struct {
	rows   []int32 // in the order in which they are played
	sorted []int32 // in the order of the dataset
	steps  []Step
}

// ready draws the order once: each row is read for it.
func (s *source) ready(ctx context.Context) (*plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plan != nil {
		return s.plan, nil
	}
	left := tally{}
	all := candidates{strata: map[uint64]int32{}}
	for read, err := range s.kept(ctx, left) {
		if err != nil {
			return nil, err
		}
		if read.task.Row >= math.MaxInt32 {
			return nil, fmt.Errorf("dataset %s: a dataset that is shuffled or sampled has at most %d rows", s.name, math.MaxInt32)
		}
		all.add(s.choice, read.task)
	}
	rows, err := all.plan(s.choice, left)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", s.name, err)
	}
	steps := s.choice.steps(left)
	if len(rows) == 0 {
		return nil, nothingLeft(s.name, steps)
	}
	s.plan = &plan{rows: rows, sorted: slices.Sorted(slices.Values(rows)), steps: steps}
	return s.plan, nil
}

// planned streams the tasks of the plan in the order of the dataset, in which they are found one after the other.
func (s *source) planned(ctx context.Context) iter.Seq2[readRow, error] {
	return sequence(func(yield func(readRow) bool) error {
		p, err := s.ready(ctx)
		if err != nil {
			return err
		}
		found := 0
		for read, err := range s.usable(ctx, passedOn) {
			if err != nil {
				return err
			}
			if read.task.Row != int(p.sorted[found]) {
				continue
			}
			if !yield(read) {
				return nil
			}
			if found++; found == len(p.rows) {
				s.report(p.steps)
				return nil
			}
		}
		return fmt.Errorf("dataset %s has changed since its order was drawn: %d of %d tasks are there", s.name, found, len(p.rows))
	})
}

// reordered reads the tasks of the plan, keeps them in scratch, and yields them in the plan's order.
func (s *source) reordered(ctx context.Context) iter.Seq2[*episode.Task, error] {
	return sequence(func(yield func(*episode.Task) bool) error {
		p, err := s.ready(ctx)
		if err != nil {
			return err
		}
		kept, err := newScratch(s.choice.Scratch)
		if err != nil {
			return err
		}
		defer kept.close()
		for read, err := range s.planned(ctx) {
			if err == nil {
				err = kept.put(read.task)
			}
			if err != nil {
				return err
			}
		}
		for _, row := range p.rows {
			if err := s.ended(ctx); err != nil {
				return err
			}
			place, _ := slices.BinarySearch(p.sorted, row)
			task, err := kept.take(place)
			if err != nil {
				return err
			}
			if !yield(task) {
				return nil
			}
		}
		return nil
	})
}
