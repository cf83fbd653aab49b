package export

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"trajgen/pipeline/episode"
)

// verifiersNode is a message, with the tokens that it adds to those before it.
type verifiersNode struct {
	Parent    *int        `json:"parent,omitempty"`
	Message   object      `json:"message"`
	Sampled   bool        `json:"sampled"`
	Timestamp float64     `json:"timestamp,omitempty"`
	TokenIDs  episode.IDs `json:"token_ids"`
	Mask      []bool      `json:"mask"`
	Logprobs  []float32   `json:"logprobs"`
}

const (
	noteNoIDs     = "traces without token ids, as the server told none"
	noteBrokenIDs = "traces without their token ids, as a turn does not go on from the ids before it, or those of a turn are missing"
)

// trace is a Trace of verifiers, version 1.
func (w *verifiersWriter) trace(ep *episode.Episode, task object) (object, error) {
	sampling := object{
		{"temperature", some(ep.Sampling.Temperature)}, {"top_p", some(ep.Sampling.TopP)}, {"max_tokens", some(ep.Sampling.MaxTokens)},
	}
	g, err := newVerifiersGraph(ep, sampling)
	if err != nil {
		return nil, err
	}
	config := object{{"model", some(cmp.Or(ep.Sampling.Model, ep.Model))}, {"sampling", sampling}}
	info := map[string]any{
		"outcome": ep.Outcome, "sample": ep.Key.Sample, "seed": ep.Key.Seed, "attempt": ep.Attempt, "toolsets": ep.Toolsets, "log_p": ep.LogP,
	}
	name := "agent"
	if ep.Origin != nil {
		name, info["subagent_of"] = "subagent", ep.Origin
	}
	if len(ep.Compactions) > 0 {
		info["compactions"] = ep.Compactions
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
	return object{
		{"version", 1},
		{"id", ep.ID + "-agent"},
		{"verifiers", verifiersVersion(w.run)},
		{"task", task},
		{"agent", object{{"config", config}, {"name", name}, {"trainable", true}}},
		{"tools", verifiersTools(ep.Tools)},
		{"nodes", g.nodes},
		{"calls", g.calls},
		{"request_rewrites", []any{}},
		{"response_rewrites", []any{}},
		{"rewards", verifiersRewards(ep)},
		{"metrics", object{
			{"num_failed_tool_calls", failedCalls(ep)}, {"num_tool_calls", len(ep.Calls)}, {"num_turns", len(ep.Turns)},
		}},
		{"info", info},
		{"extra_usage", extraUsage(ep)},
		{"is_completed", true},
		{"ok", ep.Outcome.AgentsDoing()},
		{"stop_condition", stopCondition(ep)},
		{"errors", verifiersErrors(ep)},
		{"timing", verifiersTiming(ep)},
	}, nil
}

func verifiersVersion(run Run) object {
	return object{{"version", "trajgen " + cmp.Or(run.Version, "unknown")}}
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
func verifiersRewards(ep *episode.Episode) map[string]object {
	if ep.Reward == nil {
		return map[string]object{inspectReward: nil}
	}
	weights, sum := 0.0, 0.0
	for _, r := range ep.Rewards {
		weights += r.Weight
		sum += r.Weight * r.Value
	}
	shared := weights > 0 && math.Abs(sum/weights-*ep.Reward) < 1e-9
	rewards := map[string]object{}
	add := func(name string, score, weight float64) { rewards[name] = object{{"score", score}, {"weight", weight}} }
	for i, r := range ep.Rewards {
		name := cmp.Or(r.Name, "check")
		if _, taken := rewards[name]; taken || name == inspectReward {
			name += "_" + strconv.Itoa(i+1)
		}
		if shared {
			add(name, r.Value, r.Weight/weights)
		} else {
			add(name, r.Value, 0)
		}
	}
	if !shared {
		add(inspectReward, *ep.Reward, 1)
	}
	return rewards
}

// extraUsage is what others than the agent used.
func extraUsage(ep *episode.Episode) []object {
	used := []object{}
	add := func(u episode.Usage) {
		if u.Reported {
			used = append(used, verifiersUsage(u))
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

func verifiersUsage(u episode.Usage) object {
	return object{{"prompt_tokens", u.Prompt}, {"completion_tokens", u.Completion}}
}

// verifiersTools are the tools whose schema can be read; one without parameters takes any.
func verifiersTools(tools []json.RawMessage) []function {
	list := []function{}
	for _, tool := range tools {
		f, err := functionOf(tool)
		if err != nil {
			continue
		}
		if f.Parameters = asObject(f.Parameters); f.Parameters == nil {
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

// verifiersSpan is in seconds since 1970; zero from the time that is not known.
func verifiersSpan(from time.Time, d time.Duration) object {
	if from.IsZero() {
		d = 0
	}
	return object{{"start", seconds(from)}, {"end", seconds(from.Add(d))}}
}

// verifiersTiming lays the phases one behind the other, in the order in which they are.
func verifiersTiming(ep *episode.Episode) object {
	at := ep.Started
	next := func(d time.Duration) object {
		span := verifiersSpan(at, d)
		if !at.IsZero() {
			at = at.Add(d)
		}
		return span
	}
	duration := func(d time.Duration) object { return object{{"duration", d.Seconds()}} }
	p := ep.Phases
	boot, setup := next(p.Open), next(p.Setup)
	agent := append(next(p.Agent), object{{"model", duration(p.Model)}, {"harness", duration(max(0, p.Agent-p.Model))}}...)
	scoring := next(p.Verify)
	return object{
		{"start", seconds(ep.Started)}, {"boot", boot}, {"setup", setup}, {"agent", agent}, {"finalize", next(p.Close)}, {"scoring", scoring},
	}
}
