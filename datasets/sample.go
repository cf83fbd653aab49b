package datasets

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

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
		values := rowValues(task)
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
