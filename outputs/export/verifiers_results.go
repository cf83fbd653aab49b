package export

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"trajgen/outputs/estimate"
	"trajgen/pipeline/episode"
)

var verifiersResultsFormat = Format{
	trains:   true,
	imaging:  inlined,
	About:    "a results directory of verifiers before v1: results.jsonl and metadata.json with its averages",
	Folder:   true,
	Settings: map[string]Setting{"env": {About: "is the id of the environment (default: the run's dataset)"}},
	open: func(path string, options Options) (target, error) {
		w := &resultsWriter{notes: notes{}, env: verifiersEnv(options), run: options.Run, metrics: map[string]*average{}}
		s, err := openFolderSink(path, "results.jsonl", w.notes)
		if err != nil {
			return nil, err
		}
		s.convert = w.row
		s.last = func() error { return s.createJSON("metadata.json", 0, w.metadata()) }
		return s, nil
	},
}

// resultsMessages are messages as verifiers keeps those of a chat API, images as parts with data URLs among them
// (verifiers/legacy/utils/save_utils.py).
func resultsMessages(messages []episode.Message) []chatMessage[any] {
	list := make([]chatMessage[any], len(messages))
	for i := range messages {
		list[i], _ = newChatMessage(&messages[i], chatContent(&messages[i]), asWritten) // which never fails
	}
	return list
}

// resultsThreshold is the reward from which verifiers counts a rollout as solved.
const resultsThreshold = 0.5

// average is of what was added.
type average struct {
	sum float64
	n   int
}

func (a *average) add(v float64) { a.sum, a.n = a.sum+v, a.n+1 }

func (a *average) mean() float64 {
	if a.n == 0 {
		return 0
	}
	return a.sum / float64(a.n)
}

// resultsWriter makes the rows, and adds up what metadata.json says.
type resultsWriter struct {
	notes
	env           string
	run           Run
	reward        average
	metrics       map[string]*average
	input, output average
	milliseconds  float64
	began         time.Time // the first of the episodes
	cost          average
	at            int                    // row of the dataset
	atRow         map[string]resultsTask // tasks at the row: merged runs can have several
	tasks, most   int
	passAny       []average // pass@k, by the exponent of k
	passAll       []average
}

func (w *resultsWriter) row(ep *episode.Episode) (object, error) {
	switch {
	case len(ep.Messages) == 0:
		return nil, &Refusal{refuseEmpty}
	case ep.Reward == nil:
		return nil, &Refusal{refuseReward}
	}
	prompt := asked(ep)
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	info := map[string]any{"task_id": ep.Key.Task, "sample": ep.Key.Sample, "outcome": ep.Outcome, "toolsets": ep.Toolsets}
	if len(ep.Task.Metadata) > 0 {
		info["metadata"] = shallow(ep.Task.Metadata)
	}
	metrics := map[string]float64{"num_turns": float64(len(ep.Turns)), "total_tool_calls": float64(len(ep.Calls))}
	for i, r := range ep.Rewards {
		name := cmp.Or(r.Name, "check")
		if _, taken := metrics[name]; taken {
			name += "_" + strconv.Itoa(i+1)
		}
		metrics[name] = r.Value
	}
	row := object{
		{"example_id", ep.Row},
		{"episode_id", ep.ID},
		{"task", w.env},
		{"prompt", resultsMessages(prompt)},
		{"completion", resultsMessages(ep.Messages[len(prompt):])},
		{"reward", *ep.Reward},
		{"timing", object{
			{"generation_ms", milliseconds(ep.Phases.Agent)}, {"scoring_ms", milliseconds(ep.Phases.Verify)}, {"total_ms", milliseconds(ep.Elapsed)},
		}},
		{"is_completed", true},
		{"is_truncated", ep.Outcome == episode.Limit},
		{"metrics", metrics},
		{"answer", some(answerOf(&ep.Task))},
		{"info", info},
		{"stop_condition", some(stopCondition(ep))},
		{"tool_defs", some(shallowAll(ep.Tools))},
	}
	if u := ep.Usage; u.Reported {
		row = append(row, field{"token_usage", resultsUsage(float64(u.Prompt), float64(u.Completion))})
	}
	if ep.Drift != nil {
		w.notes["rows without their token ids, for which the format has no place"]++
	}
	w.milliseconds += milliseconds(ep.Elapsed)
	w.count(ep, metrics)
	return row, nil
}

func resultsUsage(input, output float64) object {
	return object{{"input_tokens", input}, {"output_tokens", output}}
}

// count adds an episode up.
func (w *resultsWriter) count(ep *episode.Episode, metrics map[string]float64) {
	if w.atRow == nil || w.at != ep.Row {
		w.endRow()
		w.at, w.atRow = ep.Row, map[string]resultsTask{}
	}
	task := w.atRow[ep.Key.Task]
	task.tried++
	if *ep.Reward >= resultsThreshold {
		task.solved++
	}
	w.atRow[ep.Key.Task] = task
	w.reward.add(*ep.Reward)
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		if w.metrics[name] == nil {
			if len(w.metrics) == inspectNames {
				w.notes["metrics whose average is left out, as there are more than 256 names"]++
				continue
			}
			w.metrics[name] = &average{}
		}
		w.metrics[name].add(metrics[name])
	}
	if u := ep.Usage; u.Reported {
		w.input.add(float64(u.Prompt))
		w.output.add(float64(u.Completion))
	}
	if ep.CostUSD != nil {
		w.cost.add(*ep.CostUSD)
	}
	if w.began.IsZero() || ep.Started.Before(w.began) {
		w.began = ep.Started
	}
}

// resultsTask are the samples of a task.
type resultsTask struct{ tried, solved int }

// endRow estimates for each task at the row how likely one of k samples is solved, and how likely all are, for the powers of
// two up to their number.
func (w *resultsWriter) endRow() {
	for _, name := range sortedKeys(w.atRow) {
		task := w.atRow[name]
		w.tasks, w.most = w.tasks+1, max(w.most, task.tried)
		for i, k := 0, 1; k <= task.tried; i, k = i+1, 2*k {
			if i == len(w.passAny) {
				w.passAny, w.passAll = append(w.passAny, average{}), append(w.passAll, average{})
			}
			w.passAny[i].add(estimate.PassAtK(task.tried, task.solved, k))
			w.passAll[i].add(estimate.PassHatK(task.tried, task.solved, k))
		}
	}
}

func (w *resultsWriter) metadata() object {
	w.endRow()
	date := ""
	if !w.began.IsZero() {
		date = w.began.UTC().Format("2006-01-02 15:04:05")
	}
	metrics, passAny, passAll := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for name, a := range w.metrics {
		metrics[name] = a.mean()
	}
	for i := range w.passAny {
		k := strconv.Itoa(1 << i)
		passAny[k], passAll[k] = w.passAny[i].mean(), w.passAll[i].mean()
	}
	var usage object
	if w.input.n > 0 {
		usage = resultsUsage(w.input.mean(), w.output.mean())
	}
	var cost *float64
	if w.cost.n > 0 {
		cost = &w.cost.sum
	}
	return object{
		{"env_id", w.env},
		{"env_args", object{}},
		{"model", w.run.Model},
		{"base_url", w.run.BaseURL},
		{"num_examples", w.tasks},
		{"rollouts_per_example", max(w.run.Samples, w.most)},
		{"sampling_args", object{}},
		{"date", date},
		{"time_ms", w.milliseconds},
		{"avg_reward", w.reward.mean()},
		{"avg_metrics", metrics},
		{"avg_error", 0},
		{"pass_at_k", passAny},
		{"pass_all_k", passAll},
		{"pass_threshold", resultsThreshold},
		{"usage", usage},
		{"cost", cost},
		{"version_info", verifiersVersion(w.run)},
		{"state_columns", []any{}},
		{"path_to_save", "."},
	}
}
