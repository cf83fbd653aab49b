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
	noteOrphans   = "trajectories with a result that answers no call of the turn before it; it stands in a step of its own"
)

// atifTrajectory is a document of ATIF-v1.7.
type atifTrajectory struct {
	SchemaVersion string      `json:"schema_version"`
	SessionID     string      `json:"session_id"`
	TrajectoryID  string      `json:"trajectory_id"`
	Agent         atifAgent   `json:"agent"`
	Steps         []*atifStep `json:"steps"`
	FinalMetrics  *atifFinal  `json:"final_metrics,omitempty"`
	Extra         atifEpisode `json:"extra"`
}

type atifAgent struct {
	Name            string            `json:"name"`
	Version         string            `json:"version"`
	ModelName       string            `json:"model_name,omitempty"`
	ToolDefinitions []json.RawMessage `json:"tool_definitions,omitempty"`
	Extra           atifSampling      `json:"extra"`
}

type atifSampling struct {
	Toolsets     []string         `json:"toolsets,omitempty"`
	Distribution string           `json:"distribution,omitempty"`
	LogP         float64          `json:"log_p"`
	Sampling     episode.Sampling `json:"sampling,omitzero"`
}

// atifEpisode is what the trajectory came to.
type atifEpisode struct {
	Task    string           `json:"task"`
	Row     int              `json:"row"`
	Sample  int              `json:"sample"`
	Seed    uint64           `json:"seed"`
	Attempt int              `json:"attempt"`
	Earlier episode.Attempts `json:"earlier,omitempty"`
	Run     string           `json:"run,omitempty"`
	Outcome episode.Outcome  `json:"outcome"`
	Stop    episode.Stop     `json:"stop"`
	Fault   *episode.Fault   `json:"fault,omitempty"`
	Answer  string           `json:"answer,omitempty"`
	Reward  *float64         `json:"reward"`
	Rewards []episode.Reward `json:"rewards,omitempty"`
	Drift   string           `json:"drift,omitempty"`
	// Compactions are those behind the last turn: for one that never came, or to fit the whole into a budget.
	Compactions []episode.Compaction `json:"compactions,omitempty"`
}

type atifFinal struct {
	TotalPromptTokens     *int     `json:"total_prompt_tokens,omitempty"`
	TotalCompletionTokens *int     `json:"total_completion_tokens,omitempty"`
	TotalCachedTokens     *int     `json:"total_cached_tokens,omitempty"`
	TotalCostUSD          *float64 `json:"total_cost_usd,omitempty"`
	TotalSteps            int      `json:"total_steps"`
}

type atifStep struct {
	StepID           int              `json:"step_id"`
	Timestamp        string           `json:"timestamp,omitempty"`
	Source           string           `json:"source"`
	ModelName        string           `json:"model_name,omitempty"`
	ReasoningEffort  string           `json:"reasoning_effort,omitempty"`
	Message          string           `json:"message"`
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
	Extra        map[string]any `json:"extra,omitempty"`
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

// trajectory is the document of an episode.
func (w *atifWriter) trajectory(ep *episode.Episode) (*atifTrajectory, error) {
	if len(ep.Messages) == 0 {
		return nil, &Refusal{refuseEmpty}
	}
	t := &atifTrajectory{
		SchemaVersion: "ATIF-v1.7", SessionID: ep.ID, TrajectoryID: ep.ID,
		Agent: atifAgent{
			Name: "trajgen", Version: w.version, ModelName: cmp.Or(ep.Model, ep.Sampling.Model),
			Extra: atifSampling{ep.Toolsets, ep.Distribution, ep.LogP, ep.Sampling},
		},
		Extra: atifEpisode{
			Task: ep.Key.Task, Row: ep.Row, Sample: ep.Key.Sample, Seed: ep.Key.Seed, Attempt: ep.Attempt, Earlier: ep.Earlier, Run: ep.Run,
			Outcome: ep.Outcome, Stop: ep.Stop, Fault: ep.Fault, Answer: ep.Answer, Reward: ep.Reward, Rewards: ep.Rewards,
		},
	}
	if ep.Drift != nil {
		t.Extra.Drift = string(ep.Drift.Verdict)
	}
	for _, tool := range ep.Tools {
		if tool := object(tool); tool != nil {
			t.Agent.ToolDefinitions = append(t.Agent.ToolDefinitions, tool)
		}
	}
	steps := newATIFSteps(ep, w.ids)
	t.Steps = steps.all()
	t.Extra.Compactions = steps.after
	t.FinalMetrics = &atifFinal{TotalCostUSD: ep.CostUSD, TotalSteps: len(t.Steps)}
	if u := ep.Usage; u.Reported {
		t.FinalMetrics.TotalPromptTokens, t.FinalMetrics.TotalCompletionTokens, t.FinalMetrics.TotalCachedTokens = &u.Prompt, &u.Completion, &u.Cached
	}
	w.count(ep, steps)
	return t, nil
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
