package export

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"trajgen/pipeline/episode"
)

// verifiersTrace is a Trace of verifiers, version 1.
type verifiersTrace struct {
	Version          int                         `json:"version"`
	ID               string                      `json:"id"`
	Verifiers        verifiersVersion            `json:"verifiers"`
	Task             verifiersTask               `json:"task"`
	Agent            verifiersAgent              `json:"agent"`
	Tools            []function                  `json:"tools"`
	Nodes            []verifiersNode             `json:"nodes"`
	Calls            []verifiersCall             `json:"calls"`
	RequestRewrites  []any                       `json:"request_rewrites"`
	ResponseRewrites []any                       `json:"response_rewrites"`
	Rewards          map[string]*verifiersReward `json:"rewards"`
	Metrics          map[string]float64          `json:"metrics"`
	Info             map[string]any              `json:"info"`
	ExtraUsage       []verifiersUsage            `json:"extra_usage"`
	IsCompleted      bool                        `json:"is_completed"`
	OK               bool                        `json:"ok"`
	StopCondition    string                      `json:"stop_condition"`
	Errors           []verifiersError            `json:"errors"`
	Timing           verifiersTiming             `json:"timing"`
}

type verifiersVersion struct {
	Version string `json:"version"`
}

type verifiersAgent struct {
	Config    verifiersAgentConfig `json:"config"`
	Name      string               `json:"name"`
	Trainable bool                 `json:"trainable"`
}

type verifiersAgentConfig struct {
	Model    string            `json:"model,omitempty"`
	Sampling verifiersSampling `json:"sampling"`
}

type verifiersSampling struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitempty"`
}

// verifiersNode is a message, with the tokens that it adds to those before it.
type verifiersNode struct {
	Parent    *int             `json:"parent,omitempty"`
	Message   verifiersMessage `json:"message"`
	Sampled   bool             `json:"sampled"`
	Timestamp float64          `json:"timestamp,omitempty"`
	TokenIDs  episode.IDs      `json:"token_ids"`
	Mask      []bool           `json:"mask"`
	Logprobs  []float32        `json:"logprobs"`
}

type verifiersMessage struct {
	Role             string                 `json:"role"`
	Content          string                 `json:"content"`
	ReasoningContent string                 `json:"reasoning_content,omitempty"`
	ToolCalls        []verifiersMessageCall `json:"tool_calls,omitempty"`
	ToolCallID       *string                `json:"tool_call_id,omitempty"`
	Name             string                 `json:"name,omitempty"`
}

type verifiersMessageCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type verifiersCall struct {
	Node         *int              `json:"node,omitempty"`
	Model        string            `json:"model,omitempty"`
	Sampling     verifiersSampling `json:"sampling"`
	Endpoint     string            `json:"endpoint"`
	FinishReason string            `json:"finish_reason,omitempty"`
	Usage        *verifiersUsage   `json:"usage,omitempty"`
	Time         verifiersSpan     `json:"time"`
	Error        *verifiersError   `json:"error,omitempty"`
}

type verifiersUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
}

type verifiersReward struct {
	Score  float64 `json:"score"`
	Weight float64 `json:"weight"`
}

// verifiersSpan is in seconds since 1970.
type verifiersSpan struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
}

type verifiersTiming struct {
	Start    float64            `json:"start"`
	Boot     verifiersSpan      `json:"boot"`
	Setup    verifiersSpan      `json:"setup"`
	Agent    verifiersAgentSpan `json:"agent"`
	Finalize verifiersSpan      `json:"finalize"`
	Scoring  verifiersSpan      `json:"scoring"`
}

type verifiersAgentSpan struct {
	verifiersSpan
	Model   verifiersDuration `json:"model"`
	Harness verifiersDuration `json:"harness"`
}

type verifiersDuration struct {
	Duration float64 `json:"duration"`
}

const (
	noteNoIDs     = "traces without token ids, as the server told none"
	noteBrokenIDs = "traces without their token ids, as a turn does not go on from the ids before it, or those of a turn are missing"
)

func (w *verifiersWriter) trace(ep *episode.Episode, task verifiersTask) (*verifiersTrace, error) {
	sampling := verifiersSampling{ep.Sampling.Temperature, ep.Sampling.TopP, ep.Sampling.MaxTokens}
	g, err := newVerifiersGraph(ep, sampling)
	if err != nil {
		return nil, err
	}
	trace := &verifiersTrace{
		Version: 1, ID: ep.ID + "-agent", Verifiers: verifiersVersion{"trajgen " + cmp.Or(w.run.Version, "unknown")}, Task: task,
		Agent: verifiersAgent{verifiersAgentConfig{cmp.Or(ep.Sampling.Model, ep.Model), sampling}, "agent", true},
		Tools: verifiersTools(ep.Tools), Nodes: g.nodes, Calls: g.calls, RequestRewrites: []any{}, ResponseRewrites: []any{},
		Rewards: verifiersRewards(ep), ExtraUsage: extraUsage(ep), IsCompleted: true, OK: ep.Outcome.AgentsDoing(),
		Metrics: map[string]float64{
			"num_turns": float64(len(ep.Turns)), "num_tool_calls": float64(len(ep.Calls)), "num_failed_tool_calls": float64(failedCalls(ep)),
		},
		Info: map[string]any{
			"outcome": ep.Outcome, "sample": ep.Key.Sample, "seed": ep.Key.Seed, "attempt": ep.Attempt, "toolsets": ep.Toolsets, "log_p": ep.LogP,
		},
		StopCondition: stopCondition(ep), Errors: verifiersErrors(ep), Timing: newVerifiersTiming(ep),
	}
	if len(ep.Compactions) > 0 {
		trace.Info["compactions"] = ep.Compactions
	}
	switch {
	case ep.Drift == nil:
		w.notes[noteNoIDs]++
	case ep.Drift.Verdict != episode.DriftNone:
		w.notes[noteBrokenIDs]++
	}
	if ep.Reward == nil {
		w.notes["traces whose rewards are null: they were not judged, or ended in what is not the agent's doing"]++
	}
	return trace, nil
}

// stopCondition uses the words by which verifiers tells that a trace was cut short.
func stopCondition(ep *episode.Episode) string {
	switch ep.Stop {
	case episode.StopMaxTokens:
		return "max_total_tokens"
	case episode.StopFault:
		return "error"
	}
	return string(ep.Stop)
}

// verifiersRewards are weighted so that verifiers' sum of them is the episode's reward.
func verifiersRewards(ep *episode.Episode) map[string]*verifiersReward {
	if ep.Reward == nil {
		return map[string]*verifiersReward{inspectReward: nil}
	}
	weights, sum := 0.0, 0.0
	for _, r := range ep.Rewards {
		weights += r.Weight
		sum += r.Weight * r.Value
	}
	shared := weights > 0 && math.Abs(sum/weights-*ep.Reward) < 1e-9
	rewards := map[string]*verifiersReward{}
	for i, r := range ep.Rewards {
		name := cmp.Or(r.Name, "check")
		if _, taken := rewards[name]; taken || name == inspectReward {
			name += "_" + strconv.Itoa(i+1)
		}
		reward := &verifiersReward{Score: r.Value}
		if shared {
			reward.Weight = r.Weight / weights
		}
		rewards[name] = reward
	}
	if !shared {
		rewards[inspectReward] = &verifiersReward{*ep.Reward, 1}
	}
	return rewards
}

// extraUsage is what others than the agent used.
func extraUsage(ep *episode.Episode) []verifiersUsage {
	used := []verifiersUsage{}
	add := func(u episode.Usage) {
		if u.Reported {
			used = append(used, verifiersUsage{u.Prompt, u.Completion})
		}
	}
	for i := range ep.Compactions {
		if u := ep.Compactions[i].Usage; u != nil {
			add(*u)
		}
	}
	if ep.User != nil {
		add(ep.User.Usage)
	}
	if u, asked := ep.ApproverUsage(); asked {
		add(u)
	}
	return used
}

// verifiersTools are the tools whose schema can be read; one without parameters takes any.
func verifiersTools(tools []json.RawMessage) []function {
	list := []function{}
	for _, tool := range tools {
		f, err := functionOf(tool)
		if err != nil {
			continue
		}
		if f.Parameters = object(f.Parameters); f.Parameters == nil {
			f.Parameters = json.RawMessage("{}")
		}
		list = append(list, f)
	}
	return list
}

func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMicro()) / 1e6
}

// newVerifiersTiming lays the phases one behind the other, in the order in which they are.
func newVerifiersTiming(ep *episode.Episode) verifiersTiming {
	at := ep.Started
	next := func(d time.Duration) verifiersSpan {
		if at.IsZero() {
			return verifiersSpan{}
		}
		span := verifiersSpan{Start: seconds(at)}
		at = at.Add(d)
		span.End = seconds(at)
		return span
	}
	p := ep.Phases
	t := verifiersTiming{Start: seconds(ep.Started), Boot: next(p.Open), Setup: next(p.Setup)}
	t.Agent = verifiersAgentSpan{next(p.Agent), verifiersDuration{p.Model.Seconds()}, verifiersDuration{max(0, p.Agent-p.Model).Seconds()}}
	t.Scoring = next(p.Verify)
	t.Finalize = next(p.Close)
	return t
}
