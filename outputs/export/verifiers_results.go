package export

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"trajgen/outputs/report"
	"trajgen/pipeline/episode"
)

var verifiersResultsFormat = Format{
	About:    "a results directory of verifiers before v1: results.jsonl and metadata.json with its averages",
	Folder:   true,
	Settings: map[string]Setting{"env": {About: "is the id of the environment (default: the run's dataset)"}},
	open: func(path string, options Options) (target, error) {
		s, err := openTraces(path, "results.jsonl", options)
		if err != nil {
			return nil, err
		}
		w := &resultsWriter{notes: s.notes, env: s.env, run: options.Run, metrics: map[string]*average{}}
		s.convert = w.row
		s.last = func() error { return s.createJSON("metadata.json", 0, w.metadata()) }
		return s, nil
	},
}

type resultsRow struct {
	ExampleID     int                `json:"example_id"`
	EpisodeID     string             `json:"episode_id"`
	Task          string             `json:"task"`
	Prompt        []chatMessage      `json:"prompt"`
	Completion    []chatMessage      `json:"completion"`
	Reward        float64            `json:"reward"`
	Timing        resultsTiming      `json:"timing"`
	IsCompleted   bool               `json:"is_completed"`
	IsTruncated   bool               `json:"is_truncated"`
	Metrics       map[string]float64 `json:"metrics"`
	Answer        string             `json:"answer,omitempty"`
	Info          map[string]any     `json:"info,omitempty"`
	StopCondition string             `json:"stop_condition,omitempty"`
	ToolDefs      []json.RawMessage  `json:"tool_defs,omitempty"`
	TokenUsage    *resultsUsage      `json:"token_usage,omitempty"`
}

type resultsTiming struct {
	GenerationMS float64 `json:"generation_ms"`
	ScoringMS    float64 `json:"scoring_ms"`
	TotalMS      float64 `json:"total_ms"`
}

type resultsUsage struct {
	InputTokens  float64 `json:"input_tokens"`
	OutputTokens float64 `json:"output_tokens"`
}

func resultsMessages(messages []episode.Message) []chatMessage {
	list := make([]chatMessage, len(messages))
	for i := range messages {
		list[i], _ = newChatMessage(&messages[i], asWritten) // which never fails
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

func (w *resultsWriter) row(ep *episode.Episode) (any, error) {
	switch {
	case len(ep.Messages) == 0:
		return nil, &Refusal{refuseEmpty}
	case ep.Reward == nil:
		return nil, &Refusal{refuseReward}
	}
	prompt := asked(ep)
	row := resultsRow{
		ExampleID: ep.Row, EpisodeID: ep.ID, Task: w.env, Prompt: resultsMessages(prompt), Completion: resultsMessages(ep.Messages[len(prompt):]), Reward: *ep.Reward,
		Timing: resultsTiming{
			float64(ep.Phases.Agent.Microseconds()) / 1e3, float64(ep.Phases.Verify.Microseconds()) / 1e3, float64(ep.Elapsed.Microseconds()) / 1e3,
		},
		IsCompleted: true, IsTruncated: ep.Outcome == episode.Limit, Answer: answerOf(&ep.Task), StopCondition: stopCondition(ep), ToolDefs: shallowAll(ep.Tools),
		Metrics: map[string]float64{"num_turns": float64(len(ep.Turns)), "total_tool_calls": float64(len(ep.Calls))},
		Info:    map[string]any{"task_id": ep.Key.Task, "sample": ep.Key.Sample, "outcome": ep.Outcome, "toolsets": ep.Toolsets},
	}
	for i, r := range ep.Rewards {
		name := cmp.Or(r.Name, "check")
		if _, taken := row.Metrics[name]; taken {
			name += "_" + strconv.Itoa(i+1)
		}
		row.Metrics[name] = r.Value
	}
	if len(ep.Task.Metadata) > 0 {
		row.Info["metadata"] = shallow(ep.Task.Metadata)
	}
	if u := ep.Usage; u.Reported {
		row.TokenUsage = &resultsUsage{float64(u.Prompt), float64(u.Completion)}
	}
	if ep.Drift != nil {
		w.notes["rows without their token ids, for which the format has no place"]++
	}
	w.count(ep, &row)
	return &row, nil
}

// count adds an episode up.
func (w *resultsWriter) count(ep *episode.Episode, row *resultsRow) {
	if w.atRow == nil || w.at != ep.Row {
		w.endRow()
		w.at, w.atRow = ep.Row, map[string]resultsTask{}
	}
	task := w.atRow[ep.Key.Task]
	task.tried++
	if row.Reward >= resultsThreshold {
		task.solved++
	}
	w.atRow[ep.Key.Task] = task
	w.reward.add(row.Reward)
	for _, name := range slices.Sorted(maps.Keys(row.Metrics)) {
		if w.metrics[name] == nil {
			if len(w.metrics) == inspectNames {
				w.notes["metrics whose average is left out, as there are more than 256 names"]++
				continue
			}
			w.metrics[name] = &average{}
		}
		w.metrics[name].add(row.Metrics[name])
	}
	if row.TokenUsage != nil {
		w.input.add(row.TokenUsage.InputTokens)
		w.output.add(row.TokenUsage.OutputTokens)
	}
	if ep.CostUSD != nil {
		w.cost.add(*ep.CostUSD)
	}
	w.milliseconds += row.Timing.TotalMS
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
			w.passAny[i].add(report.PassAtK(task.tried, task.solved, k))
			w.passAll[i].add(report.PassHatK(task.tried, task.solved, k))
		}
	}
}

type resultsMetadata struct {
	EnvID              string             `json:"env_id"`
	EnvArgs            struct{}           `json:"env_args"`
	Model              string             `json:"model"`
	BaseURL            string             `json:"base_url"`
	NumExamples        int                `json:"num_examples"`
	RolloutsPerExample int                `json:"rollouts_per_example"`
	SamplingArgs       struct{}           `json:"sampling_args"`
	Date               string             `json:"date"`
	TimeMS             float64            `json:"time_ms"`
	AvgReward          float64            `json:"avg_reward"`
	AvgMetrics         map[string]float64 `json:"avg_metrics"`
	AvgError           float64            `json:"avg_error"`
	PassAtK            map[string]float64 `json:"pass_at_k"`
	PassAllK           map[string]float64 `json:"pass_all_k"`
	PassThreshold      float64            `json:"pass_threshold"`
	Usage              *resultsUsage      `json:"usage"`
	Cost               *float64           `json:"cost"`
	VersionInfo        verifiersVersion   `json:"version_info"`
	StateColumns       []string           `json:"state_columns"`
	PathToSave         string             `json:"path_to_save"`
}

func (w *resultsWriter) metadata() resultsMetadata {
	w.endRow()
	m := resultsMetadata{
		EnvID: w.env, Model: w.run.Model, BaseURL: w.run.BaseURL, NumExamples: w.tasks, RolloutsPerExample: max(w.run.Samples, w.most),
		TimeMS: w.milliseconds, AvgReward: w.reward.mean(), AvgMetrics: map[string]float64{}, PassAtK: map[string]float64{},
		PassAllK: map[string]float64{}, PassThreshold: resultsThreshold, VersionInfo: verifiersVersion{"trajgen " + cmp.Or(w.run.Version, "unknown")},
		StateColumns: []string{}, PathToSave: ".",
	}
	if !w.began.IsZero() {
		m.Date = w.began.UTC().Format("2006-01-02 15:04:05")
	}
	for name, a := range w.metrics {
		m.AvgMetrics[name] = a.mean()
	}
	for i := range w.passAny {
		k := strconv.Itoa(1 << i)
		m.PassAtK[k], m.PassAllK[k] = w.passAny[i].mean(), w.passAll[i].mean()
	}
	if w.input.n > 0 {
		m.Usage = &resultsUsage{w.input.mean(), w.output.mean()}
	}
	if w.cost.n > 0 {
		m.Cost = &w.cost.sum
	}
	return m
}
