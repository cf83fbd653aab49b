package report

import (
	"cmp"
	"maps"
	"math"
	"slices"

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

	Success Change `json:"success_rate"`
	Reward  Change `json:"reward"`
	Turns   Change `json:"turns"`
	Tokens  Change `json:"tokens"`
	CostUSD Change `json:"cost_usd"`
	Elapsed Change `json:"elapsed_s"`

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

// Change is a mean in each run, over the same tasks with equal weight, and the change between them.
//
// The interval of the change is over the differences task by task: what the runs have in common, easy and hard tasks,
// takes no part in it. Samples of a task are averaged first.
type Change struct {
	From   *float64 `json:"from"`
	To     *float64 `json:"to"`
	Change Estimate `json:"change"`
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

// TaskScore is how the samples of a task came out. Errors are no samples.
type TaskScore struct {
	Samples   int      `json:"samples"`
	Successes int      `json:"successes"`
	Errors    int      `json:"errors"`
	Reward    *float64 `json:"reward"` // mean; nil when none was judged
}

// share of successes; only with samples.
func (s TaskScore) share() float64 { return float64(s.Successes) / float64(s.Samples) }

// Comparison collects the episodes of two runs. It holds some numbers for each task.
type Comparison struct {
	from, to map[string]*scored
	outside  bool // some reward is not between 0 and 1
}

// scored is what one run knows of one task.
type scored struct {
	row, errors                  int
	reward, success              cluster
	turns, tokens, cost, elapsed cluster // of which a value that is not known is open
	outcomes                     []ended
}

// ended is how a sample ended.
type ended struct {
	sample  int
	outcome episode.Outcome
}

func (s *scored) score() TaskScore {
	score := TaskScore{Samples: s.success.n, Successes: int(s.success.sum), Errors: s.errors}
	if s.reward.n > 0 {
		score.Reward = new(s.reward.mean())
	}
	return score
}

// NewComparison compares nothing yet.
func NewComparison() *Comparison {
	return &Comparison{from: make(map[string]*scored), to: make(map[string]*scored)}
}

// AddFrom adds an episode of the first run.
func (c *Comparison) AddFrom(ep *episode.Episode) { c.add(c.from, ep) }

// AddTo adds an episode of the second run.
func (c *Comparison) AddTo(ep *episode.Episode) { c.add(c.to, ep) }

func (c *Comparison) add(tasks map[string]*scored, ep *episode.Episode) {
	t := tasks[ep.Key.Task]
	if t == nil {
		t = &scored{row: ep.Row}
		tasks[kept(ep.Key.Task)] = t
	}
	t.outcomes = append(t.outcomes, ended{ep.Key.Sample, kept(ep.Outcome)})
	if !ep.Outcome.AgentsDoing() {
		t.errors++
		return
	}
	if judged(ep) {
		t.reward.add(*ep.Reward)
		t.success.add(succeeded(ep))
		c.outside = c.outside || *ep.Reward < 0 || *ep.Reward > 1
	}
	t.turns.add(float64(len(ep.Turns)))
	if ep.Usage.Reported {
		t.tokens.add(float64(ep.Usage.Prompt + ep.Usage.Completion))
	} else {
		t.tokens.open++
	}
	if ep.CostUSD != nil {
		t.cost.add(*ep.CostUSD)
	} else {
		t.cost.open++
	}
	t.elapsed.add(ep.Elapsed.Seconds())
}

// Finish says what changed.
func (c *Comparison) Finish(from, to string, experiment []string) *Difference {
	d := &Difference{From: from, To: to, Experiment: append([]string{}, experiment...), Estimand: estimand, Moves: []OutcomeMove{}, Changed: []ChangedTask{}}
	var success, reward, turns, tokens, cost, elapsed paired
	moves := make(map[OutcomeMove]int)
	for _, name := range slices.Sorted(maps.Keys(c.from)) {
		a, b := c.from[name], c.to[name]
		if b == nil {
			d.Tasks.OnlyFrom++
			continue
		}
		bySample := func(x ended, sample int) int { return cmp.Compare(x.sample, sample) }
		slices.SortFunc(b.outcomes, func(x, y ended) int { return bySample(x, y.sample) })
		for _, was := range a.outcomes {
			if at, ok := slices.BinarySearchFunc(b.outcomes, was.sample, bySample); ok && b.outcomes[at].outcome != was.outcome {
				moves[OutcomeMove{From: was.outcome, To: b.outcomes[at].outcome}]++
			}
		}
		turns.add(a.turns, b.turns)
		tokens.add(a.tokens, b.tokens)
		cost.add(a.cost, b.cost)
		elapsed.add(a.elapsed, b.elapsed)
		if a.success.n == 0 || b.success.n == 0 {
			d.Tasks.Uncompared++
			continue
		}
		d.Tasks.Compared++
		reward.addPlays(a.reward, b.reward)
		success.addPlays(a.success, b.success)
		d.place(name, a, b)
	}
	for name := range c.to {
		if c.from[name] == nil {
			d.Tasks.OnlyTo++
		}
	}
	ofRewards := methodPaired
	if c.outside {
		ofRewards, reward.a, reward.b = methodT, nil, nil
	}
	d.Success, d.Reward, d.Turns = success.estimate(methodPaired), reward.estimate(ofRewards), turns.estimate(methodT)
	d.Tokens, d.CostUSD, d.Elapsed = tokens.estimate(methodT), cost.estimate(methodT), elapsed.estimate(methodT)
	d.SignP = signTest(d.Better, d.Worse)
	for move, n := range moves {
		move.Count = n
		d.Moves = append(d.Moves, move)
	}
	slices.SortFunc(d.Moves, func(a, b OutcomeMove) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	slices.SortFunc(d.Changed, func(a, b ChangedTask) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Task, b.Task))
	})
	return d
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

const estimand = "the mean difference over tasks like these, each once; fixed_suite is over these very tasks"

// paired collects values of the same task in both runs.
type paired struct {
	from, to, change []float64
	a, b             []cluster // the plays of each task, of values between 0 and 1
}

// add adds a task of which both runs know all values: a mean of what happens to be known is a guess.
func (p *paired) add(from, to cluster) {
	if from.n == 0 || to.n == 0 || from.open+to.open > 0 {
		return
	}
	a, b := from.mean(), to.mean()
	p.from, p.to, p.change = append(p.from, a), append(p.to, b), append(p.change, b-a)
}

func (p *paired) addPlays(from, to cluster) {
	p.add(from, to)
	p.a, p.b = append(p.a, from), append(p.b, to)
}

func (p *paired) estimate(method string) Change {
	c := Change{From: estimateOf(p.from, methodT).Mean, To: estimateOf(p.to, methodT).Mean, Change: estimateOf(p.change, method)}
	if suite, ok := suiteDifference(p.a, p.b); ok {
		c.Change.FixedSuite = &suite
	}
	return c
}
