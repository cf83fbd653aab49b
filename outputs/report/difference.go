package report

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// Difference is what changed from one run to another, over the tasks that both have.
type Difference struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Experiment says where the two experiments differ, a line each.
	Experiment []string `json:"experiment"`
	// Estimand says what the intervals are about.
	Estimand string `json:"estimand"`

	Tasks PairedTasks `json:"tasks"`
	// Better, Worse and Same count the compared tasks by their share of successes.
	Better int `json:"better"`
	Worse  int `json:"worse"`
	Same   int `json:"same"`
	// SignP is the two-sided p value of the exact sign test over Better and Worse: how often chance alone would split
	// them so unevenly. Nil when no task changed.
	SignP *float64 `json:"sign_p"`

	Success estimate.Change `json:"success_rate"`
	Reward  estimate.Change `json:"reward"`
	Turns   estimate.Change `json:"turns"`
	Tokens  estimate.Change `json:"tokens"`
	CostUSD estimate.Change `json:"cost_usd"`
	Elapsed estimate.Change `json:"elapsed_s"`

	// Moves count pairs of episodes with the same task and sample by their outcomes, those that differ.
	Moves []OutcomeMove `json:"moves"`
	// Changed are the tasks whose share of successes or mean reward differs, the largest changes first.
	Changed []ChangedTask `json:"changed"`
}

// PairedTasks counts tasks by where they are.
type PairedTasks struct {
	Compared   int `json:"compared"`   // judged in both
	Uncompared int `json:"uncompared"` // in both, but in one of them only errors, or nothing that was judged
	OnlyFrom   int `json:"only_from"`
	OnlyTo     int `json:"only_to"`
}

// OutcomeMove counts episodes that ended one way in the first run and another in the second.
type OutcomeMove struct {
	From  episode.Outcome `json:"from"`
	To    episode.Outcome `json:"to"`
	Count int             `json:"count"`
}

// ChangedTask is a task that came out otherwise.
type ChangedTask struct {
	Task string    `json:"task"`
	Row  int       `json:"row"`
	From TaskScore `json:"from"`
	To   TaskScore `json:"to"`
}

// TaskScore is how the samples of a task came out. Errors do not count as samples.
type TaskScore struct {
	Samples   int      `json:"samples"`
	Successes int      `json:"successes"`
	Errors    int      `json:"errors"`
	Reward    *float64 `json:"reward"` // mean; nil when none was judged
}

// share of successes; only with samples.
func (s TaskScore) share() float64 { return float64(s.Successes) / float64(s.Samples) }

// Comparison collects the episodes of two runs. It holds some numbers for each task, and how each episode ended.
type Comparison struct {
	from, to side
	outside  estimate.Outside // rewards
}

// side is what is known of one run.
type side struct {
	tasks    map[string]*scored
	outcomes map[sampleOf]episode.Outcome
}

type sampleOf struct {
	task   string
	sample int
}

// What is measured of a task. A value that is not known is open.
const (
	success = iota
	reward
	turns
	tokens
	cost
	elapsed
	measures
)

// scored is what one run knows of one task.
type scored struct {
	row, errors int
	values      [measures]estimate.Cluster
}

func (s *scored) score() TaskScore {
	score := TaskScore{Samples: s.values[success].N, Successes: int(s.values[success].Sum), Errors: s.errors}
	if s.values[reward].N > 0 {
		score.Reward = new(s.values[reward].Mean())
	}
	return score
}

// NewComparison compares nothing yet.
func NewComparison() *Comparison {
	newSide := func() side { return side{outcomes: make(map[sampleOf]episode.Outcome)} }
	return &Comparison{from: newSide(), to: newSide()}
}

// AddFrom adds an episode of the first run.
func (c *Comparison) AddFrom(ep *episode.Episode) { c.add(&c.from, ep) }

// AddTo adds an episode of the second run.
func (c *Comparison) AddTo(ep *episode.Episode) { c.add(&c.to, ep) }

func (c *Comparison) add(s *side, ep *episode.Episode) {
	if ep.Twin != nil { // which is no sample of its task
		return
	}
	t := tallyOf(&s.tasks, ep.Key.Task)
	t.row = ep.Row
	s.outcomes[sampleOf{kept(ep.Key.Task), ep.Key.Sample}] = kept(ep.Outcome)
	if !judged(ep) && len(ep.Task.Verify) > 0 {
		t.values[reward].Open++
		t.values[success].Open++
	}
	if !ep.Outcome.AgentsDoing() {
		t.errors++
		return
	}
	if judged(ep) {
		t.values[reward].Add(*ep.Reward)
		t.values[success].Add(succeeded(ep))
		c.outside.Add(*ep.Reward)
	}
	t.values[turns].Add(float64(len(ep.Turns)))
	if ep.Usage.Reported {
		t.values[tokens].Add(float64(ep.Usage.Prompt + ep.Usage.Completion))
	} else {
		t.values[tokens].Open++
	}
	if ep.CostUSD != nil {
		t.values[cost].Add(*ep.CostUSD)
	} else {
		t.values[cost].Open++
	}
	t.values[elapsed].Add(ep.Elapsed.Seconds())
}

// Finish says what changed.
func (c *Comparison) Finish(from, to string, experiment []string) *Difference {
	d := &Difference{
		From: from, To: to, Experiment: append([]string{}, experiment...), Estimand: estimate.Estimand,
		Moves: c.moves(), Changed: []ChangedTask{},
	}
	var pairs [measures]estimate.Comparison
	for _, name := range slices.Sorted(maps.Keys(c.from.tasks)) {
		a, b := c.from.tasks[name], c.to.tasks[name]
		if b == nil {
			d.Tasks.OnlyFrom++
			continue
		}
		for m := range pairs {
			if m <= reward || a.values[m].Open+b.values[m].Open == 0 { // else the mean of what happens to be known is a guess
				pairs[m].Add(a.values[m], b.values[m])
			}
		}
		if a.values[success].N == 0 || b.values[success].N == 0 {
			d.Tasks.Uncompared++
			continue
		}
		d.Tasks.Compared++
		d.place(name, a, b)
	}
	d.Tasks.OnlyTo = len(c.to.tasks) - d.Tasks.Compared - d.Tasks.Uncompared
	ofRewards := estimate.MethodPaired
	if c.outside.Any() {
		ofRewards = estimate.MethodT
	}
	changes := []*estimate.Change{&d.Success, &d.Reward, &d.Turns, &d.Tokens, &d.CostUSD, &d.Elapsed}
	for m, method := range []estimate.Method{
		estimate.MethodPaired, ofRewards, estimate.MethodT, estimate.MethodT, estimate.MethodT, estimate.MethodT,
	} {
		*changes[m] = pairs[m].Change(method)
	}
	estimate.Correct(changes)
	c.outside.Tell(&d.Reward.Change)
	d.SignP = estimate.SignTest(d.Better, d.Worse)
	slices.SortFunc(d.Changed, func(a, b ChangedTask) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Task, b.Task))
	})
	return d
}

// moves counts the episodes that ended otherwise, the most frequent moves first.
func (c *Comparison) moves() []OutcomeMove {
	counts := make(map[OutcomeMove]int)
	for sample, was := range c.from.outcomes {
		if now, ok := c.to.outcomes[sample]; ok && now != was {
			counts[OutcomeMove{From: was, To: now}]++
		}
	}
	moves := []OutcomeMove{}
	for move, n := range counts {
		move.Count = n
		moves = append(moves, move)
	}
	slices.SortFunc(moves, func(a, b OutcomeMove) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return moves
}

// place counts a task that is compared, and keeps it when it changed.
func (d *Difference) place(name string, a, b *scored) {
	task := ChangedTask{Task: name, Row: a.row, From: a.score(), To: b.score()}
	switch change := task.To.share() - task.From.share(); {
	case change > 0:
		d.Better++
	case change < 0:
		d.Worse++
	default:
		d.Same++
	}
	if task.size() > 0 {
		d.Changed = append(d.Changed, task)
	}
}

// size is how much a task changed: its share of successes first, then its reward.
func (t ChangedTask) size() float64 {
	size := math.Abs(t.To.share() - t.From.share())
	if t.From.Reward != nil && t.To.Reward != nil {
		size += math.Abs(*t.To.Reward-*t.From.Reward) / 1e6
	}
	return size
}
