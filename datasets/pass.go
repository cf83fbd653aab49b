package datasets

import (
	"cmp"
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

// kept streams the tasks that where and part leave.
func (s *source) kept(ctx context.Context, left tally) iter.Seq2[readRow, error] {
	return func(yield func(readRow, error) bool) {
		if err := s.knowsNames(ctx); err != nil {
			yield(readRow{}, err)
			return
		}
		for read, err := range s.usable(ctx, s.skip) {
			if err != nil {
				yield(read, err)
				return
			}
			if read.task.ID != read.given && s.options.OnRepeat != nil {
				s.options.OnRepeat(read.given)
			}
			left["read"]++
			if s.choice.condition != nil {
				holds, err := s.choice.condition.Match(rowValues(read.task))
				if err != nil {
					if err := s.skip(read.row, read.task.Row, err.Error()); err != nil {
						yield(readRow{}, err)
						return
					}
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
			if !yield(read, nil) {
				return
			}
		}
	}
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
	return func(yield func(readRow, error) bool) {
		left := tally{}
		at := 0
		for read, err := range s.kept(ctx, left) {
			if err != nil {
				yield(readRow{}, err)
				return
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
			if !yield(read, nil) {
				return
			}
			if left["max_tasks"] == s.choice.max || s.choice.slice.ends(at) {
				break
			}
		}
		steps := s.choice.steps(left)
		if left["slice"] == 0 {
			yield(readRow{}, nothingLeft(s.name, steps))
			return
		}
		s.tell(steps)
	}
}

func (s *source) tell(steps []Step) {
	if s.options.OnChosen != nil {
		s.options.OnChosen(slices.Clone(steps))
	}
}

// plan is an order that was drawn.
type plan struct {
	rows  []int32 // in the order in which they are played
	byRow []int32 // the places in that order, by the rows that are there
	steps []Step
}

// ready draws the order once: each row is read for it.
func (s *source) ready(ctx context.Context) (*plan, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plan != nil {
		return s.plan, nil
	}
	left := tally{}
	all := candidates{strata: map[string]int32{}, names: map[string]bool{}}
	for read, err := range s.kept(ctx, left) {
		if err != nil {
			return nil, err
		}
		if read.task.Row >= math.MaxInt32 {
			return nil, fmt.Errorf("dataset %s: a dataset that is shuffled or sampled has at most %d rows", s.name, math.MaxInt32)
		}
		all.add(s.choice, read)
	}
	rows, err := all.plan(s.choice, left)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", s.name, err)
	}
	steps := s.choice.steps(left)
	if len(rows) == 0 {
		return nil, nothingLeft(s.name, steps)
	}
	p := &plan{rows: rows, steps: steps, byRow: make([]int32, len(rows))}
	for place := range rows {
		p.byRow[place] = int32(place)
	}
	slices.SortFunc(p.byRow, func(a, b int32) int { return cmp.Compare(rows[a], rows[b]) })
	s.plan = p
	return p, nil
}

// planned streams the tasks of the plan in the order of the dataset, in which they are found one after the other.
func (s *source) planned(ctx context.Context) iter.Seq2[readRow, error] {
	return func(yield func(readRow, error) bool) {
		p, err := s.ready(ctx)
		if err != nil {
			yield(readRow{}, err)
			return
		}
		found := 0
		for read, err := range s.usable(ctx, passedOn) {
			if err != nil {
				yield(readRow{}, err)
				return
			}
			if read.task.Row != int(p.rows[p.byRow[found]]) {
				continue
			}
			if !yield(read, nil) {
				return
			}
			if found++; found == len(p.rows) {
				s.tell(p.steps)
				return
			}
		}
		yield(readRow{}, fmt.Errorf("dataset %s has changed since its order was drawn: %d of %d tasks are there", s.name, found, len(p.rows)))
	}
}

// reordered reads the tasks of the plan, keeps their rows in scratch, and yields them as tasks in the plan's order.
func (s *source) reordered(ctx context.Context) iter.Seq2[*episode.Task, error] {
	return func(yield func(*episode.Task, error) bool) {
		p, err := s.ready(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		kept, err := newScratch(s.choice.Scratch, len(p.rows))
		if err != nil {
			yield(nil, err)
			return
		}
		defer kept.close()
		found := 0
		for read, err := range s.planned(ctx) {
			if err == nil {
				err = kept.put(int(p.byRow[found]), read.task.ID, read.text)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			found++
		}
		for place, row := range p.rows {
			task, err := s.again(ctx, kept, place)
			if err != nil {
				yield(nil, err)
				return
			}
			task.Row = int(row)
			if !yield(task, nil) {
				return
			}
		}
	}
}

// again decodes a row from scratch.
func (s *source) again(ctx context.Context, kept *scratch, place int) (*episode.Task, error) {
	if err := s.ended(ctx); err != nil {
		return nil, err
	}
	id, text, err := kept.take(place)
	if err != nil {
		return nil, err
	}
	task, wrong := s.task(row{text: text})
	if len(wrong) > 0 {
		return nil, fmt.Errorf("read dataset %s again: %s", s.name, wrong)
	}
	task.ID = id
	return task, nil
}
