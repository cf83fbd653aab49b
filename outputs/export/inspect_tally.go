package export

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"trajgen/pipeline/episode"
)

// inspectTally adds up what the header says. A score is first averaged over the samples of a task, and the metrics are
// over the tasks, as Inspect has it.
type inspectTally struct {
	run, model             string
	config                 object
	first                  time.Time
	earliest, latest       time.Time
	samples, completed     int
	epochs                 int // the last one
	usage                  map[string]inspectUsage
	scores                 map[string]*inspectMean
	row                    int
	atRow                  map[string]map[string]*average // of the row that is being read: scores of each task, by its id
	manyScores, manyModels bool
}

// inspectMean is the mean of a score over tasks.
type inspectMean struct {
	scored  int
	tasks   int
	mean    float64
	squares float64 // sum of the squared differences from the mean
}

// add adds the mean of a task's samples.
func (m *inspectMean) add(mean float64) {
	m.tasks++
	delta := mean - m.mean
	m.mean += delta / float64(m.tasks)
	m.squares += delta * (mean - m.mean)
}

func (m *inspectMean) stderr() float64 {
	if m.tasks < 2 {
		return 0
	}
	return math.Sqrt(m.squares/float64(m.tasks-1)) / math.Sqrt(float64(m.tasks))
}

// inspectNames bounds the scores and models that the header lists.
const inspectNames = 256

func (t *inspectTally) init() {
	t.usage, t.scores = map[string]inspectUsage{}, map[string]*inspectMean{}
}

// begin takes from the first episode what the run does not say.
func (t *inspectTally) begin(ep *episode.Episode) {
	t.run, t.model, t.first = ep.Run, cmp.Or(ep.Model, ep.Sampling.Model), ep.Started
	t.config = newInspectGenerate(ep.Sampling)
}

func (t *inspectTally) add(id string, ep *episode.Episode, sample *inspectSample, reduced *list) error {
	if t.atRow == nil || t.row != ep.Row {
		if err := t.endRow(reduced); err != nil {
			return err
		}
		t.row, t.atRow = ep.Row, map[string]map[string]*average{}
	}
	own := t.atRow[id]
	if own == nil {
		own = map[string]*average{}
		t.atRow[id] = own
	}
	t.samples++
	t.epochs = max(t.epochs, sample.epoch)
	if ep.Outcome.AgentsDoing() {
		t.completed++
	}
	if ended := ep.Started.Add(ep.Elapsed); !ep.Started.IsZero() {
		if t.earliest.IsZero() || ep.Started.Before(t.earliest) {
			t.earliest = ep.Started
		}
		if ended.After(t.latest) {
			t.latest = ended
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sample.scores)) {
		score, m := sample.scores[name], t.scores[name]
		if m == nil {
			if len(t.scores) == inspectNames {
				t.manyScores = true
				continue
			}
			m = &inspectMean{}
			t.scores[name] = m
		}
		m.scored++
		if own[name] == nil {
			own[name] = &average{}
		}
		own[name].add(score.Value)
	}
	for _, name := range slices.Sorted(maps.Keys(sample.usage)) {
		used := sample.usage[name]
		sum, known := t.usage[name]
		if !known && len(t.usage) == inspectNames {
			t.manyModels = true
			continue
		}
		sum.InputTokens += used.InputTokens
		sum.OutputTokens += used.OutputTokens
		sum.TotalTokens += used.TotalTokens
		sum.CacheRead += used.CacheRead
		sum.ReasoningTokens += used.ReasoningTokens
		t.usage[name] = sum
	}
	return nil
}

// endRow takes the means of each task's samples into those of all tasks.
func (t *inspectTally) endRow(reduced *list) error {
	for _, task := range sortedKeys(t.atRow) {
		for name, score := range t.atRow[task] {
			t.scores[name].add(score.mean())
			if name != inspectReward {
				continue
			}
			if err := reduced.add(object{{"value", score.mean()}, {"sample_id", task}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *inspectTally) remark(n notes) {
	if t.manyScores {
		n["scores that the header leaves out, as there are more than 256 names"]++
	}
	if t.manyModels {
		n["models that the header leaves out, as there are more than 256"]++
	}
}
