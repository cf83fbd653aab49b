package export

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"trajgen/pipeline/episode"
)

type inspectUsage struct {
	InputTokens     int      `json:"input_tokens"`
	OutputTokens    int      `json:"output_tokens"`
	TotalTokens     int      `json:"total_tokens"`
	CacheRead       int      `json:"input_tokens_cache_read,omitempty"`
	ReasoningTokens int      `json:"reasoning_tokens,omitempty"`
	TotalCost       *float64 `json:"total_cost,omitempty"`
}

func newInspectUsage(u episode.Usage) inspectUsage {
	return inspectUsage{InputTokens: u.Prompt, OutputTokens: u.Completion, TotalTokens: u.Prompt + u.Completion, CacheRead: u.Cached, ReasoningTokens: u.Reasoning}
}

// newInspectGenerate is how a model was asked. It leaves out an effort that Inspect has no word for.
func newInspectGenerate(s episode.Sampling) object {
	effort := s.ReasoningEffort
	if !slices.Contains([]string{"none", "minimal", "low", "medium", "high", "xhigh"}, effort) {
		effort = ""
	}
	return object{
		{"temperature", some(s.Temperature)}, {"top_p", some(s.TopP)}, {"max_tokens", some(s.MaxTokens)}, {"reasoning_effort", some(effort)},
	}
}

// start is what was evaluated, as far as the run says it, or else the first episode. A status follows the version when it is
// known.
func (s *inspectSink) start(status string) object {
	run := s.options.Run
	id := cmp.Or(run.Fingerprint, s.tally.run, "unknown")
	var packages object
	if run.Version != "" {
		packages = object{{"trajgen", run.Version}}
	}
	spec := object{
		{"eval_id", shortDigest("eval\x00" + id + "\x00" + s.task)},
		{"run_id", id},
		{"created", inspectTime(s.tally.first)},
		{"task", s.task},
		{"task_id", shortDigest("task\x00" + s.task)},
		{"task_version", 0},
		{"solver", "trajgen"},
		{"dataset", object{{"name", some(run.Dataset)}, {"samples", some(run.Tasks)}}},
		{"model", cmp.Or(run.Model, s.tally.model, "unknown")},
		{"model_base_url", some(run.BaseURL)},
		{"model_generate_config", s.tally.config},
		{"config", object{{"epochs", some(max(run.Samples, s.tally.epochs))}, {"epochs_reducer", []string{"mean"}}}},
		{"packages", some(packages)},
		{"metadata", object{
			{"dataset_digest", run.Digest}, {"fingerprint", run.Fingerprint}, {"seed", strconv.FormatUint(run.Seed, 10)},
		}},
	}
	steps := []object{{{"solver", "trajgen"}, {"params", object{}}}}
	return object{{"version", 2}, {"status", some(status)}, {"eval", spec}, {"plan", object{{"name", "plan"}, {"steps", steps}}}}
}

// cmpTime is the first of two times that is set.
func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// inspectTime is never empty: Inspect wants each time.
func inspectTime(at time.Time) string {
	if at.IsZero() {
		at = time.Unix(0, 0)
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

// header is an EvalLog without its samples, in the order in which Inspect reads it.
func (s *inspectSink) header() object {
	t := &s.tally
	scores := []object{}
	for _, name := range sortedKeys(t.scores) {
		m := t.scores[name]
		metric := func(name string, value float64) field {
			return field{name, object{{"name", name}, {"value", value}, {"params", object{}}}}
		}
		scores = append(scores, object{
			{"name", name},
			{"scorer", name},
			{"reducer", "mean"},
			{"scored_samples", m.scored},
			{"unscored_samples", t.samples - m.scored},
			{"params", object{}},
			{"metrics", object{metric("mean", m.mean), metric("stderr", m.stderr())}},
		})
	}
	started, ended := "", ""
	if !t.earliest.IsZero() {
		started, ended = inspectTime(t.earliest), inspectTime(t.latest)
	}
	return append(s.start("success"), object{
		{"results", object{{"total_samples", t.samples}, {"completed_samples", t.completed}, {"scores", scores}}},
		{"stats", object{{"started_at", started}, {"completed_at", ended}, {"model_usage", t.usage}}},
	}...)
}
