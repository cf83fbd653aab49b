package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/where"
)

// Choice says which episodes of a source are exported. The zero value is all of them.
type Choice struct {
	Where string // a condition over Variables; empty is true
	// PerTask is how many samples of a task: all, best, or a number: so many of the best.
	PerTask string
	// Dedupe leaves out samples that repeat an earlier one of the task: none, exact (the same messages) or answer (the
	// same final answer). Samples with a reward are compared with each other, as are those without.
	Dedupe string
	Max    int // end after so many episodes; 0 is never
}

// Choose applies a choice: first the condition, then the duplicates, then how many of a task. What it leaves out is
// counted in the Result of Write. The source must be in dataset order.
func Choose(source Source, choice Choice) (Source, error) {
	c := &chosen{source: source, choice: choice}
	var errs []error
	if choice.Where != "" {
		var err error
		if c.condition, err = where.Parse(choice.Where, examples(), false); err != nil {
			errs = append(errs, fmt.Errorf("where: %w", err))
		}
	}
	switch choice.PerTask {
	case "", "all":
	case "best":
		c.perTask = 1
	default:
		n, err := strconv.Atoi(choice.PerTask)
		if err != nil || n < 1 {
			errs = append(errs, fmt.Errorf("per task: %q (want all, best or a number from 1)", choice.PerTask))
		}
		c.perTask = n
	}
	if !slices.Contains([]string{"", "none", "exact", "answer"}, choice.Dedupe) {
		errs = append(errs, fmt.Errorf("dedupe: %q (want none, exact or answer)", choice.Dedupe))
	}
	if choice.Max < 0 {
		errs = append(errs, fmt.Errorf("max: %d (want a number from 1, or 0 for all)", choice.Max))
	}
	return c, errors.Join(errs...)
}

type chosen struct {
	source    Source
	choice    Choice
	condition *where.Condition // nil takes all
	perTask   int              // 0 is all
	groups    map[taskOf]*group

	dropped map[string]int
	ended   bool // at max, though the source had more
}

// Dropped counts what the last reading left out, by reason.
func (c *chosen) Dropped() map[string]int { return maps.Clone(c.dropped) }

func (c *chosen) Notes() []string {
	if c.ended {
		return []string{fmt.Sprintf("ended after %d episodes, as was asked for; there are more", c.choice.Max)}
	}
	return nil
}

// The reasons why an episode is left out.
const (
	dropWhere  = "the condition does not hold"
	dropExact  = "the same messages as an earlier sample"
	dropAnswer = "the same answer as an earlier sample"
	dropBetter = "other samples of the task are better"
)

func (c *chosen) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		c.dropped, c.ended = map[string]int{}, false
		left, names := c.choice.Max, &where.Names{}
		if c.condition != nil {
			names = c.condition.Names()
		}
		pass := func(ep *episode.Episode) bool {
			if c.choice.Max > 0 && left == 0 {
				c.ended = true
				return false
			}
			left--
			return yield(ep, nil)
		}
		if c.choice.Grouped() {
			if err := c.group(ctx); err != nil {
				yield(nil, err)
				return
			}
		}
		row := &sameRow{chosen: c}
		row.begin(0)
		for ep, err := range c.source.Episodes(ctx) {
			if err == nil && c.condition != nil {
				row := values(ep, c.choice.Where)
				if g := c.groups[taskOf{ep.Row, ep.Key.Task}]; g != nil {
					row["group"], row["advantage"] = g.values(ep)
				}
				if !names.Found() {
					known := maps.Clone(row)
					if len(ep.Rewards) == 0 { // it was not judged
						delete(known, "rewards")
					}
					names.Add(known)
				}
				if c.ended && names.Found() {
					return
				}
				if c.ended {
					continue
				}
				var match bool
				if match, err = c.condition.Match(row); err == nil && !match {
					c.dropped[dropWhere]++
					continue
				}
				if err != nil {
					err = fmt.Errorf("where: episode %s: %w", ep.ID, err)
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			more := true
			if ep.Row != row.row {
				more = row.flush(pass)
				row.begin(ep.Row)
			}
			switch {
			case !more || row.repeats(ep):
			case c.perTask > 0:
				row.hold(ep)
			default:
				more = pass(ep)
			}
			if !more && (!c.ended || names.Found()) {
				return
			}
		}
		if err := names.Err(); err != nil {
			yield(nil, fmt.Errorf("where: %w", err))
			return
		}
		row.flush(pass)
	}
}

// sameRow is what is known of the samples at one row of the dataset. Merged shards of a dataset can have several tasks
// there.
type sameRow struct {
	*chosen
	row  int
	seen map[[32]byte]bool
	held map[string][]*episode.Episode // by task: the best so far, best first
}

func (r *sameRow) begin(row int) {
	r.row, r.seen, r.held = row, map[[32]byte]bool{}, map[string][]*episode.Episode{}
}

// repeats says whether a sample is a duplicate, and counts it.
func (r *sameRow) repeats(ep *episode.Episode) bool {
	var text any
	reason := dropExact
	switch r.choice.Dedupe {
	case "exact":
		text = ep.Messages
	case "answer":
		text, reason = ep.Answer, dropAnswer
	default:
		return false
	}
	// A sample that could not be judged must not stand for one that was.
	encoded, err := json.Marshal([]any{ep.Key.Task, ep.Reward == nil, text})
	if err != nil { // a tool's raw JSON that is none: nothing repeats it
		return false
	}
	sum := sha256.Sum256(encoded)
	if r.seen[sum] {
		r.dropped[reason]++
		return true
	}
	r.seen[sum] = true
	return false
}

// hold keeps a sample if it is among the best of its task.
func (r *sameRow) hold(ep *episode.Episode) {
	list := r.held[ep.Key.Task]
	at, _ := slices.BinarySearchFunc(list, ep, better)
	if list = slices.Insert(list, at, ep); len(list) > r.perTask {
		list = list[:r.perTask]
		r.dropped[dropBetter]++
	}
	r.held[ep.Key.Task] = list
}

// flush passes on what is held, in dataset order.
func (r *sameRow) flush(pass func(*episode.Episode) bool) bool {
	held := slices.Concat(slices.Collect(maps.Values(r.held))...)
	slices.SortFunc(held, datasetOrder)
	for _, ep := range held {
		if !pass(ep) {
			return false
		}
	}
	clear(r.held)
	return true
}

// better orders samples of a task: by reward, none being the least, then the fewest tokens, then the sample.
func better(a, b *episode.Episode) int {
	reward := func(ep *episode.Episode) float64 {
		if ep.Reward == nil {
			return math.Inf(-1)
		}
		return *ep.Reward
	}
	tokens := func(ep *episode.Episode) int { // an unknown number is the largest
		if !ep.Usage.Reported {
			return math.MaxInt
		}
		return ep.Usage.Prompt + ep.Usage.Completion
	}
	return cmp.Or(cmp.Compare(reward(b), reward(a)), cmp.Compare(tokens(a), tokens(b)), datasetOrder(a, b))
}
