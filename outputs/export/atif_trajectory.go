package export

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"trajgen/pipeline/episode"
)

const refuseEmpty = "no messages"

const (
	notePromptIDs = "trajectories without the ids of their prompts (--set ids=prompt has them)"
	noteRawArgs   = "trajectories with arguments that are no JSON object; ATIF has {} for them, and the text in extra"
	noteUnbegun   = "subagents that had not begun when their episode ended"
	noteOrphans   = "trajectories with a result that answers no call of the turn before it; it stands in a step of its own"
)

type atifStep struct {
	StepID           int              `json:"step_id"`
	Timestamp        string           `json:"timestamp,omitempty"`
	Source           string           `json:"source"`
	ModelName        string           `json:"model_name,omitempty"`
	ReasoningEffort  string           `json:"reasoning_effort,omitempty"`
	Message          any              `json:"message"` // a text, or a list with images
	ReasoningContent string           `json:"reasoning_content,omitempty"`
	ToolCalls        []atifCall       `json:"tool_calls,omitempty"`
	Observation      *atifObservation `json:"observation,omitempty"`
	Metrics          *atifMetrics     `json:"metrics,omitempty"`
	IsCopiedContext  bool             `json:"is_copied_context,omitempty"`
	LLMCallCount     *int             `json:"llm_call_count,omitempty"`
	Extra            map[string]any   `json:"extra,omitempty"`
}

type atifCall struct {
	ToolCallID   string          `json:"tool_call_id"`
	FunctionName string          `json:"function_name"`
	Arguments    json.RawMessage `json:"arguments"`
	Extra        map[string]any  `json:"extra,omitempty"`
}

type atifObservation struct {
	Results []atifResult `json:"results"`
}

type atifResult struct {
	SourceCallID string         `json:"source_call_id,omitempty"`
	Content      string         `json:"content"`
	Subagents    []atifSubagent `json:"subagent_trajectory_ref,omitempty"`
	Extra        map[string]any `json:"extra,omitempty"`
}

// atifSubagent points to one of the trajectories that are embedded in the document.
type atifSubagent struct {
	TrajectoryID string `json:"trajectory_id"`
	SessionID    string `json:"session_id"`
}

type atifMetrics struct {
	PromptTokens       *int           `json:"prompt_tokens,omitempty"`
	CompletionTokens   *int           `json:"completion_tokens,omitempty"`
	CachedTokens       *int           `json:"cached_tokens,omitempty"`
	CostUSD            *float64       `json:"cost_usd,omitempty"`
	PromptTokenIDs     episode.IDs    `json:"prompt_token_ids,omitempty"`
	CompletionTokenIDs episode.IDs    `json:"completion_token_ids,omitempty"`
	Logprobs           []float32      `json:"logprobs,omitempty"`
	Extra              map[string]any `json:"extra,omitempty"`
}

type atifWriter struct {
	notes
	version string
	ids     string
}

func newATIFWriter(options Options) *atifWriter {
	return &atifWriter{notes: notes{}, version: cmp.Or(options.Run.Version, "unknown"), ids: options.Set["ids"]}
}

// trajectory is a document of ATIF-v1.7.
func (w *atifWriter) trajectory(ep *episode.Episode) (object, error) {
	if len(ep.Messages) == 0 {
		return nil, &Refusal{refuseEmpty}
	}
	var tools []json.RawMessage
	for _, tool := range ep.Tools {
		if tool := asObject(tool); tool != nil {
			tools = append(tools, tool)
		}
	}
	var subagents []object
	for _, child := range ep.Children {
		if len(child.Messages) == 0 { // it had not begun
			w.notes[noteUnbegun]++
			continue
		}
		trajectory, err := w.trajectory(child)
		if err != nil {
			return nil, err
		}
		subagents = append(subagents, trajectory)
	}
	steps := newATIFSteps(ep, w.ids)
	all := steps.all()
	w.count(ep, steps)
	var metrics object
	if u := ep.Usage; u.Reported {
		metrics = object{{"total_prompt_tokens", u.Prompt}, {"total_completion_tokens", u.Completion}, {"total_cached_tokens", u.Cached}}
	}
	return object{
		{"schema_version", "ATIF-v1.7"},
		{"session_id", episode.RootOf(ep.ID)},
		{"trajectory_id", ep.ID},
		{"agent", object{
			{"name", "trajgen"},
			{"version", w.version},
			{"model_name", some(cmp.Or(ep.Model, ep.Sampling.Model))},
			{"tool_definitions", some(tools)},
			{"extra", object{
				{"toolsets", some(ep.Toolsets)}, {"distribution", some(ep.Distribution)}, {"log_p", ep.LogP}, {"sampling", some(ep.Sampling)},
			}},
		}},
		{"steps", all},
		{"final_metrics", append(metrics, object{{"total_cost_usd", some(ep.CostUSD)}, {"total_steps", len(all)}}...)},
		{"subagent_trajectories", some(subagents)},
		{"extra", atifExtra(ep, steps.after)},
	}, nil
}

// atifExtra is what the trajectory came to. Its compactions are those behind the last turn: for one that never came, or to
// fit the whole into a budget.
func atifExtra(ep *episode.Episode, compactions []episode.Compaction) object {
	drift := ""
	if ep.Drift != nil {
		drift = string(ep.Drift.Verdict)
	}
	return object{
		{"task", ep.Key.Task},
		{"row", ep.Row},
		{"sample", ep.Key.Sample},
		{"seed", ep.Key.Seed},
		{"attempt", ep.Attempt},
		{"earlier", some(ep.Earlier)},
		{"run", some(ep.Run)},
		{"subagent_of", some(ep.Origin)},
		{"outcome", ep.Outcome},
		{"stop", ep.Stop},
		{"fault", some(ep.Fault)},
		{"answer", some(ep.Answer)},
		{"reward", ep.Reward},
		{"rewards", some(ep.Rewards)},
		{"drift", some(drift)},
		{"compactions", some(compactions)},
	}
}

// count notes what the document lacks.
func (w *atifWriter) count(ep *episode.Episode, steps *atifSteps) {
	if steps.rawArguments {
		w.notes[noteRawArgs]++
	}
	if steps.orphans {
		w.notes[noteOrphans]++
	}
	switch {
	case ep.Drift == nil:
		w.notes["trajectories without token ids, as the server told none"]++
	case w.ids == "completion":
		w.notes[notePromptIDs]++
	}
	if ep.Reward == nil {
		w.notes["trajectories whose reward is null: it was not judged, or not the agent's doing"]++
	}
}

// isoTime is a time as ISO 8601 has it; empty when there is none.
func isoTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000Z")
}

// arguments are the text of a call's arguments as a JSON object; whole says that it was one to the byte.
func arguments(text string) (parsed json.RawMessage, whole bool) {
	if !isObject(text) {
		return json.RawMessage("{}"), false
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return json.RawMessage("{}"), false
	}
	return compact.Bytes(), compact.String() == text
}
