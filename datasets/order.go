package datasets

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// plan is an order that was drawn.
type plan struct {
	rows   []int32 // in the order in which they are played
	sorted []int32 // in the order of the dataset
	steps  []Step
}

// ready draws the order once: each row is read for it.
func (s *Source) ready(ctx context.Context) (*plan, error) {
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
func (s *Source) planned(ctx context.Context) iter.Seq2[readRow, error] {
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
func (s *Source) reordered(ctx context.Context) iter.Seq2[*episode.Task, error] {
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

// candidate is a task that where and part left.
type candidate struct {
	row     int32
	stratum int32
	lot     uint64 // random number; the smallest in a stratum are drawn
}

// candidates are the input of a plan: 16 bytes for each task until the plan is made.
type candidates struct {
	list   []candidate
	strata map[uint64]int32 // by the hashes of their values
	field  bool             // some row has the field of the strata
	names  []string         // that the first row has, for a message
}

func (c *candidates) add(chosen *choice, task *episode.Task) {
	one := candidate{row: int32(task.Row)}
	if chosen.Stratify != "" {
		values := RowValues(task)
		value, ok := stratumOf(values, chosen.Stratify)
		c.field = c.field || ok
		if len(c.list) == 0 {
			c.names = slices.Sorted(maps.Keys(values))
		}
		hash := hashOf(value)
		if _, known := c.strata[hash]; !known {
			c.strata[hash] = int32(len(c.strata))
		}
		one.stratum = c.strata[hash]
		one.lot = hashOf(fmt.Sprintf("stratify %d %s", chosen.Seed, task.ID))
	}
	c.list = append(c.list, one)
}

// plan is what the steps after part make of the candidates: the rows in the order in which they are played.
func (c *candidates) plan(chosen *choice, left tally) ([]int32, error) {
	if chosen.Stratify != "" && !c.field && len(c.list) > 0 {
		return nil, fmt.Errorf("stratify: no row has a field %q (the first one has %s)", chosen.Stratify, strings.Join(c.names, ", "))
	}
	list := c.list
	if chosen.Shuffle {
		order := rand.New(rand.NewPCG(chosen.Seed, 0))
		order.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		left["shuffle"] = len(list)
	}
	if chosen.Stratify != "" {
		list = stratified(list, len(c.strata), chosen)
		left["stratify"] = len(list)
	}
	rows := []int32{}
	for at, one := range list {
		if chosen.slice.has(at) {
			rows = append(rows, one.row)
		}
	}
	left["slice"] = len(rows)
	if chosen.max > 0 && len(rows) > chosen.max {
		rows = rows[:chosen.max]
	}
	left["max_tasks"] = len(rows)
	return rows, nil
}

// stratified draws from each stratum those with the smallest lots, and keeps the order. A lot depends on the seed and the
// task alone: with more tasks in the dataset most of a sample stays.
func stratified(list []candidate, strata int, chosen *choice) []candidate {
	members := make([][]int, strata)
	for at, one := range list {
		members[one.stratum] = append(members[one.stratum], at)
	}
	sizes := make([]int, strata)
	for i := range members {
		sizes[i] = len(members[i])
	}
	take := quotas(sizes, len(list), chosen.max)
	keep := make([]bool, len(list))
	for i, at := range members {
		if chosen.PerStratum > 0 {
			take[i] = chosen.PerStratum
		}
		slices.SortFunc(at, func(a, b int) int {
			return cmp.Or(cmp.Compare(list[a].lot, list[b].lot), cmp.Compare(list[a].row, list[b].row))
		})
		for _, position := range at[:min(take[i], len(at))] {
			keep[position] = true
		}
	}
	var sample []candidate
	for at, one := range list {
		if keep[at] {
			sample = append(sample, one)
		}
	}
	return sample
}

// quotas divides n among strata in proportion to their sizes: each gets the whole part of its share, and the rest goes one by one to
// the largest remainders, on a tie to the larger stratum, then to the one that came first.
func quotas(sizes []int, total, n int) []int {
	take := make([]int, len(sizes))
	if n >= total {
		copy(take, sizes)
		return take
	}
	order := make([]int, len(sizes))
	left := n
	for i, size := range sizes {
		order[i] = i
		take[i] = n * size / total
		left -= take[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(n*sizes[b]%total, n*sizes[a]%total), cmp.Compare(sizes[b], sizes[a]))
	})
	for _, i := range order[:left] {
		take[i]++
	}
	return take
}

// scratch keeps tasks until their turn comes, in an unlinked file, which always disappears with the process.
type scratch struct {
	file *os.File
	out  *bufio.Writer
	ends []int64 // of each task in the file
}

func newScratch(dir string) (*scratch, error) {
	file, err := os.CreateTemp(dir, ".tmp-tasks-*")
	if err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("keep rows in scratch: %w", err)
	}
	return &scratch{file: file, out: bufio.NewWriterSize(file, 1<<20), ends: []int64{0}}, nil
}

func (s *scratch) put(task *episode.Task) error {
	data, err := episode.JSON(task)
	if err == nil {
		_, err = s.out.Write(data)
	}
	if err != nil {
		return fmt.Errorf("keep row %d in scratch: %w", task.Row+1, bareCause(err))
	}
	s.ends = append(s.ends, s.ends[len(s.ends)-1]+int64(len(data)))
	return nil
}

// take returns the task that was put there at that place, from 0.
func (s *scratch) take(place int) (*episode.Task, error) {
	data := make([]byte, s.ends[place+1]-s.ends[place])
	task := &episode.Task{}
	err := s.out.Flush()
	if err == nil {
		_, err = s.file.ReadAt(data, s.ends[place])
	}
	if err == nil {
		err = json.Unmarshal(data, task)
	}
	if err != nil {
		return nil, fmt.Errorf("read back a row from scratch: %w", bareCause(err))
	}
	return task, nil
}

func (s *scratch) close() { s.file.Close() } // an unlinked file: an error does not matter
