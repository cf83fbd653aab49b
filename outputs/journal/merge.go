package journal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Merged is what a merge came to.
type Merged struct {
	Episodes []int // that came from each journal
	Same     int   // that another one had, too, and the same
	Settled  int   // that another one had otherwise, which was the worse
}

// ErrConflict is an episode that two journals have, of which neither is the better.
type ErrConflict struct {
	ID                string
	Row, Sample       int
	Attempt           int
	First, Second     int // of the journals that were given
	FirstIs, SecondIs string
}

func (e *ErrConflict) Error() string {
	return fmt.Sprintf("episode %s (row %d, sample %d) is %s in the first and %s in the second, both attempt %d, and not the same",
		e.ID, e.Row, e.Sample, e.FirstIs, e.SecondIs, e.Attempt)
}

// maxConflicts bounds those that are named.
const maxConflicts = 20

// copyBytes is how much a copy writes and syncs at once.
const copyBytes = 4 << 20

// pick is an attempt that is to be copied, with the other attempts of its episode.
type pick struct {
	from   uint32
	record uint32
}

// Merge copies the episodes of several journals into one that is empty, in dataset order and frame by frame: nothing is
// decoded, and checksums are. An episode that several have is taken once when they have the same, else the one that is
// the agent's doing, else the higher attempt, with the earlier attempts that it had there. Where that does not decide
// nothing is written, and each error is an *ErrConflict.
func Merge(ctx context.Context, into *Journal, from []*Reader) (Merged, error) {
	if into.Len() > 0 {
		return Merged{}, errors.New("merge journals: the one to write holds episodes already (want an empty one)")
	}
	picks, merged, err := plan(ctx, from)
	if err != nil {
		return merged, err
	}
	copier := &copier{into: into}
	for _, p := range picks {
		r := from[p.from]
		for _, n := range r.index.byID[r.index.records[p.record].ID] {
			if err := context.Cause(ctx); err != nil {
				return merged, err
			}
			if err := copier.add(r, int(n)); err != nil {
				return merged, err
			}
		}
	}
	return merged, copier.flush()
}

// plan goes over all journals at once in dataset order.
func plan(ctx context.Context, from []*Reader) (picks []pick, merged Merged, err error) {
	merged.Episodes = make([]int, len(from))
	at := make([]int, len(from))
	var conflicts []error
	for {
		var least []int // journals whose next episode is the same and comes first
		var entry Entry
		for i, r := range from {
			if at[i] == len(r.order) {
				continue
			}
			e := r.index.records[r.order[at[i]]].Entry
			order := datasetOrder(e, entry)
			if len(least) == 0 || order < 0 {
				least, entry = []int{i}, e
			} else if order == 0 {
				least = append(least, i)
			}
		}
		if len(least) == 0 {
			break
		}
		if err := context.Cause(ctx); err != nil {
			return nil, merged, err
		}
		best := least[0]
		for _, i := range least[1:] {
			better, err := choose(from, best, i, int(from[best].order[at[best]]), int(from[i].order[at[i]]), &merged)
			if conflict, ok := errors.AsType[*ErrConflict](err); ok {
				conflicts = append(conflicts, conflict)
			} else if err != nil {
				return nil, merged, err
			}
			best = better
		}
		picks = append(picks, pick{uint32(best), from[best].order[at[best]]})
		merged.Episodes[best]++
		for _, i := range least {
			at[i]++
		}
		if len(conflicts) == maxConflicts {
			break
		}
	}
	if err := errors.Join(conflicts...); err != nil {
		return nil, merged, err
	}
	return append(picks, unfinished(from)...), merged, nil
}

// datasetOrder is by row, sample and id, as readers have it.
func datasetOrder(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Sample, b.Sample), cmp.Compare(a.ID, b.ID))
}

// choose says which of two journals has the better attempt of an episode.
func choose(from []*Reader, first, second, a, b int, merged *Merged) (int, error) {
	x, y := from[first].index.records[a].Entry, from[second].index.records[b].Entry
	if x == y {
		same, err := sameFrame(from[first], from[second], a, b)
		if err != nil {
			return first, err
		}
		if same {
			merged.Same++
			return first, nil
		}
	}
	rank := func(e Entry) int {
		if e.Outcome.AgentsDoing() {
			return 1
		}
		return 0
	}
	switch order := cmp.Or(cmp.Compare(rank(y), rank(x)), cmp.Compare(y.Attempt, x.Attempt)); {
	case order == 0:
		return first, &ErrConflict{
			ID: x.ID, Row: x.Row, Sample: x.Sample, Attempt: x.Attempt, First: first, Second: second, FirstIs: string(x.Outcome), SecondIs: string(y.Outcome),
		}
	case order > 0:
		merged.Settled++
		return second, nil
	}
	merged.Settled++
	return first, nil
}

func sameFrame(r, o *Reader, a, b int) (bool, error) {
	x, _, err := r.frame(a)
	if err != nil {
		return false, err
	}
	y, _, err := o.frame(b)
	if err != nil {
		return false, err
	}
	return bytes.Equal(x[frameHead:], y[frameHead:]), nil // the head says where in a write it stood
}

// unfinished are the episodes of which no journal has an attempt that counts, so that resume goes on with their number:
// where several have them, those with the most attempts.
func unfinished(from []*Reader) (picks []pick) {
	latest := map[string]pick{}
	for i, r := range from {
		for n := range r.index.records {
			id := r.index.records[n].ID
			if r.index.counted(id) >= 0 || r.index.latest(id) != n {
				continue
			}
			old, seen := latest[id]
			if !seen || from[old.from].index.records[old.record].Attempt < r.index.records[n].Attempt {
				latest[id] = pick{uint32(i), uint32(n)}
			}
		}
	}
	for id, p := range latest {
		if !slices.ContainsFunc(from, func(r *Reader) bool { return r.index.counted(id) >= 0 }) {
			picks = append(picks, p)
		}
	}
	slices.SortFunc(picks, func(a, b pick) int {
		return datasetOrder(from[a.from].index.records[a.record].Entry, from[b.from].index.records[b.record].Entry)
	})
	return picks
}

// frame returns the bytes of an attempt, checked.
func (r *Reader) frame(n int) ([]byte, Entry, error) {
	at := &r.index.records[n]
	f := r.files[at.segment-1]
	h, _, err := readFrame(f, at.Entry, at.offset, r.sizes[at.segment-1])
	var whole []byte
	if err == nil {
		whole, err = h.Bytes(f)
	}
	return whole, at.Entry, r.damaged(n, err)
}

// copier appends frames, many to a write.
type copier struct {
	into  *Journal
	batch []sealed
	bytes int
}

func (c *copier) add(r *Reader, n int) error {
	frame, entry, err := r.frame(n)
	if err != nil {
		return err
	}
	c.batch = append(c.batch, sealed{frame, entry})
	if c.bytes += len(frame); c.bytes >= copyBytes {
		return c.flush()
	}
	return nil
}

func (c *copier) flush() error {
	if len(c.batch) == 0 {
		return nil
	}
	err := c.into.commit(c.batch...)
	c.batch, c.bytes = nil, 0
	return err
}
