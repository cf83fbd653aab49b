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
	if !s.choice.ordered() {
		return tasksOf(s.stream(ctx))
	}
	return s.reordered(ctx)
}

func (s *source) InOrder(ctx context.Context) iter.Seq2[*episode.Task, error] {
	if !s.choice.ordered() {
		return tasksOf(s.stream(ctx))
	}
	return tasksOf(s.planned(ctx))
}

func tasksOf(reads iter.Seq2[readTask, error]) iter.Seq2[*episode.Task, error] {
	return func(yield func(*episode.Task, error) bool) {
		for read, err := range reads {
			if !yield(read.task, err) {
				return
			}
		}
	}
}

// kept streams the tasks that where and part leave, and counts them in steps.
func (s *source) kept(ctx context.Context, steps []Step) iter.Seq2[readTask, error] {
	return func(yield func(readTask, error) bool) {
		if err := s.knowsNames(ctx); err != nil {
			yield(readTask{}, err)
			return
		}
		count, inWhere, inPart := 0, 0, 0
		for read, err := range s.usable(ctx, s.skip) {
			if err != nil {
				yield(read, err)
				return
			}
			if read.task.ID != read.given && s.options.OnRepeat != nil {
				s.options.OnRepeat(read.given)
			}
			count++
			setLeft(steps, "read", count)
			if s.choice.condition != nil {
				holds, err := s.choice.condition.Match(rowValues(read.task))
				if err != nil {
					if err := s.skip(read.row, read.task.Row, err.Error()); err != nil {
						yield(readTask{}, err)
						return
					}
				}
				if !holds {
					continue
				}
				inWhere++
				setLeft(steps, "where", inWhere)
			}
			if len(s.choice.Parts) > 0 {
				if !s.choice.inPart(read.given) {
					continue
				}
				inPart++
				setLeft(steps, "part", inPart)
			}
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
func (s *source) stream(ctx context.Context) iter.Seq2[readTask, error] {
	return func(yield func(readTask, error) bool) {
		steps := s.choice.steps()
		at, sliced := 0, 0
		for read, err := range s.kept(ctx, steps) {
			if err != nil {
				yield(readTask{}, err)
				return
			}
			if s.choice.slice.ends(at) {
				break
			}
			at++
			if !s.choice.slice.has(at - 1) {
				continue
			}
			sliced++
			setLeft(steps, "slice", sliced)
			setLeft(steps, "max_tasks", sliced)
			if !yield(read, nil) {
				return
			}
			if sliced == s.choice.max || s.choice.slice.ends(at) {
				break
			}
		}
		if sliced == 0 {
			yield(readTask{}, nothingLeft(s.name, steps))
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
	steps := s.choice.steps()
	all := candidates{strata: map[string]int32{}, names: map[string]bool{}}
	for read, err := range s.kept(ctx, steps) {
		if err != nil {
			return nil, err
		}
		if read.task.Row >= math.MaxInt32 {
			return nil, fmt.Errorf("dataset %s: a dataset that is shuffled or sampled has at most %d rows", s.name, math.MaxInt32)
		}
		all.add(s.choice, read)
	}
	rows, err := all.plan(s.choice, steps)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", s.name, err)
	}
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
func (s *source) planned(ctx context.Context) iter.Seq2[readTask, error] {
	return func(yield func(readTask, error) bool) {
		p, err := s.ready(ctx)
		if err != nil {
			yield(readTask{}, err)
			return
		}
		found := 0
		for read, err := range s.usable(ctx, passedOn) {
			if err != nil {
				yield(readTask{}, err)
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
		yield(readTask{}, fmt.Errorf("dataset %s has changed since its order was drawn: %d of %d tasks are there", s.name, found, len(p.rows)))
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
		kept := newScratch(len(p.rows), s.choice.Choice)
		defer kept.close()
		found := 0
		for read, err := range s.planned(ctx) {
			if err == nil {
				err = kept.put(int(p.byRow[found]), read)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			found++
		}
		for place := range p.rows {
			err := s.ended(ctx)
			var task *episode.Task
			if err == nil {
				task, err = s.again(kept, place)
			}
			if !yield(task, err) || err != nil {
				return
			}
		}
	}
}

// again decodes a row from scratch.
func (s *source) again(kept *scratch, place int) (*episode.Task, error) {
	read, err := kept.take(place)
	if err != nil {
		return nil, err
	}
	task, wrong := s.task(read.row)
	if len(wrong) > 0 {
		return nil, fmt.Errorf("read dataset %s again: %s", s.name, wrong)
	}
	task.ID, task.Row = read.task.ID, read.task.Row
	return task, nil
}
