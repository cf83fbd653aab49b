package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

// TaskSummary is how the tasks with judged samples came out.
type TaskSummary struct {
	Judged    int `json:"judged"`
	Always    int `json:"always"`    // all samples succeeded
	Sometimes int `json:"sometimes"` // some did
	Never     int `json:"never"`
	// Kinds count them by what their samples prove with 95 % confidence: stable_pass (more than 9 of 10 succeed), flaky
	// (between 5 and 95 of 100 do), stable_fail (less than 1 of 10), or unknown.
	Kinds []Count `json:"kinds"`
	// Proofs is null where nothing was known.
	Proofs *Proofs `json:"proofs,omitempty"`
	// Table has the tasks that came out worst, and those with nothing but errors.
	Table   []TaskRow `json:"table"`
	LeftOut int       `json:"left_out"` // tasks that are not in the table
}

// TaskRow is a task that is to be judged.
type TaskRow struct {
	Task      string   `json:"task"`
	Row       int      `json:"row"`
	Samples   int      `json:"samples"` // judged
	Successes int      `json:"successes"`
	Reward    *float64 `json:"reward"` // mean
	Errors    int      `json:"errors"`
	Kind      string   `json:"kind"`
}

// maxTasks bounds the table of a report.
const maxTasks = 100

// taskTallies are what the samples of tasks came to.
type taskTallies struct {
	tasks map[string]*taskTally
	verdicts
	unjudged int
}

// taskTally is what is counted of a task beside its verdicts.
type taskTally struct {
	row, episodes, errors int
	proven                bool
	unsound               string // why its proof failed
}

// add counts an episode of its task. An answer that nothing checked is called a success for want of a better word; it proves
// nothing and is not counted as one here.
func (t *taskTallies) add(ep *episode.Episode) {
	task := tallyOf(&t.tasks, ep.Key.Task)
	if task.episodes++; task.episodes == 1 || ep.Row < task.row {
		task.row = ep.Row
	}
	if ep.Proof != nil {
		task.proven, task.unsound = true, ep.Proof.Unsound()
	}
	if !ep.Outcome.AgentsDoing() {
		task.errors++
	} else if ep.Reward == nil {
		t.unjudged++
	}
	t.verdicts.add(ep)
}

// verdicts are what judged episodes came to.
type verdicts struct{ reward, success estimate.Sample }

// add adds an episode's reward, and 1 for a success or 0. One that was to be judged and was not is unresolved.
func (v *verdicts) add(ep *episode.Episode) {
	task := ep.Key.Task
	switch {
	case judged(ep):
		v.reward.Add(task, *ep.Reward)
		v.success.Add(task, succeeded(ep))
	case len(ep.Task.Verify) > 0:
		v.reward.Unresolved(task)
		v.success.Unresolved(task)
	}
}

func (v *verdicts) list() Verdicts {
	return Verdicts{v.reward.Estimate(), v.success.Estimate(), v.success.PassRates(estimate.PassAtK), v.success.PassRates(estimate.PassHatK)}
}

func (t *taskTallies) summary() TaskSummary {
	s := TaskSummary{Table: []TaskRow{}}
	var kinds counter[string]
	for _, name := range slices.Sorted(maps.Keys(t.tasks)) {
		tally, rewards, successes := t.tasks[name], t.reward.Of(name), t.success.Of(name)
		if tally.proven {
			s.Proofs = cmp.Or(s.Proofs, &Proofs{})
			s.Proofs.add(name, tally.unsound)
		}
		row := TaskRow{Task: name, Row: tally.row, Samples: successes.N, Successes: int(successes.Sum), Errors: tally.errors, Kind: unknown}
		if row.Samples == 0 && rewards.Open == 0 { // it is not judged
			continue
		}
		if row.Samples > 0 {
			row.Reward, row.Kind = new(rewards.Mean()), stability(successes)
			s.Judged++
			kinds.add(row.Kind)
			switch row.Successes {
			case row.Samples:
				s.Always++
			case 0:
				s.Never++
			default:
				s.Sometimes++
			}
		}
		s.Table = append(s.Table, row)
	}
	s.Kinds = kinds.inOrder([]string{stablePass, flaky, stableFail, unknown})
	slices.SortFunc(s.Table, func(a, b TaskRow) int {
		return cmp.Or(cmp.Compare(a.share(), b.share()), cmp.Compare(orZero(a.Reward), orZero(b.Reward)), cmp.Compare(b.Errors, a.Errors),
			cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Row, b.Row), cmp.Compare(a.Task, b.Task))
	})
	s.LeftOut = max(0, len(s.Table)-maxTasks)
	s.Table = slices.Clip(s.Table[:len(s.Table)-s.LeftOut])
	return s
}

// share of successes; a task without samples comes first.
func (r TaskRow) share() float64 {
	if r.Samples == 0 {
		return -1
	}
	return float64(r.Successes) / float64(r.Samples)
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func (r *Report) taskFact() fact {
	t := r.Tasks
	if t.Judged == 0 {
		return fact{}
	}
	return fact{name: "tasks", text: fmt.Sprintf("%s judged: %s always succeeded, %s sometimes, %s never; proved by their samples: %s",
		Thousands(t.Judged), Thousands(t.Always), Thousands(t.Sometimes), Thousands(t.Never), countsText(t.Kinds))}
}

// taskTable shows the worst first.
func (r *Report) taskTable() table {
	t := table{title: "tasks, worst first", head: []string{"", "successes", "of", "reward", "errors", "kind"}, more: r.Tasks.LeftOut}
	for _, row := range r.Tasks.Table {
		t.add(row.Samples == 0, row.Task, Thousands(row.Successes), Thousands(row.Samples),
			number(row.Reward, decimal), Thousands(row.Errors), row.Kind)
	}
	return t
}
