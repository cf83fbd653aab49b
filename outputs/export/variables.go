package export

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// Variable is something that a condition of a Choice can ask about.
type Variable struct {
	Name    string
	Type    string // for people
	About   string
	example any
	of      func(ep *episode.Episode) any // nil of what is about the group
}

// Variables are what a condition can ask about, in the order in which the help shows them.
func Variables() []Variable { return slices.Clone(variables) }

var variables = []Variable{
	{"episode_id", "text", "name of the episode", "", func(ep *episode.Episode) any { return ep.ID }},
	{"id", "text", "the same", "", func(ep *episode.Episode) any { return ep.ID }},
	{"task", "text", "id of the task", "", func(ep *episode.Episode) any { return ep.Key.Task }},
	{"row", "number", "of the dataset, from 0", 0, func(ep *episode.Episode) any { return ep.Row }},
	{"sample", "number", "of the task, from 0", 0, func(ep *episode.Episode) any { return ep.Key.Sample }},
	{"attempt", "number", "that counts, from 1", 0, func(ep *episode.Episode) any { return ep.Attempt }},
	{"outcome", "text", "success, failure, limit, or an error outcome", "", func(ep *episode.Episode) any { return string(ep.Outcome) }},
	{"stop", "text", "why the agent stopped: answered, max_turns, ...", "", func(ep *episode.Episode) any { return string(ep.Stop) }},
	{"reward", "number or nil", "nil when it was not judged or is not the agent's doing", nil, func(ep *episode.Episode) any { return orNil(ep.Reward) }},
	{"advantage", "number or nil", "reward - group.mean", nil, nil},
	{"group", "fields", "all samples of the task: n with a reward, missing without one, passed (successes), mean reward or nil", map[string]any{"n": 0, "missing": 0, "passed": 0, "mean": nil}, nil},
	{"rewards", "numbers by name", "of the single checks: rewards.tests > 0", map[string]any{}, func(ep *episode.Episode) any {
		by := map[string]any{}
		for _, r := range ep.Rewards {
			by[r.Name] = r.Value
		}
		return by
	}},
	{"proof", "fields", "of the task, as the run knew it when it began: gold and noop, rewards or nil, and attacks, the names of those that passed", proven(&episode.Proof{}),
		func(ep *episode.Episode) any { return proven(cmp.Or(ep.Proof, &episode.Proof{})) }},
	{"subagents", "number", "in its tree: a condition is about the episode, and they go with it", 0, func(ep *episode.Episode) any {
		n := -1
		for range ep.Tree() {
			n++
		}
		return n
	}},
	{"turns", "number", "exchanges with the model", 0, func(ep *episode.Episode) any { return len(ep.Turns) }},
	{"calls", "number", "of tools", 0, func(ep *episode.Episode) any { return len(ep.Calls) }},
	{"failed_calls", "number", "those of them that were not ok", 0, func(ep *episode.Episode) any {
		n := 0
		for i := range ep.Calls {
			if ep.Calls[i].Status != episode.CallOK {
				n++
			}
		}
		return n
	}},
	{"nonzero_exits", "number", "commands and scripts that ended with another exit code than 0; of scripts the calls have failed, of commands not", 0, func(ep *episode.Episode) any {
		n := 0
		for i := range ep.Calls {
			if code := ep.Calls[i].ExitCode; code != nil && *code != 0 {
				n++
			}
		}
		return n
	}},
	{"tools", "list of texts", `that were called: "terminal" in tools`, []string{}, func(ep *episode.Episode) any {
		called := map[string]bool{}
		for i := range ep.Calls {
			called[ep.Calls[i].Name] = true
		}
		return append([]string{}, slices.Sorted(maps.Keys(called))...)
	}},
	{"toolsets", "list of texts", "that the agent had", []string{}, func(ep *episode.Episode) any { return append([]string{}, ep.Toolsets...) }},
	{"model", "text", "as its server names it", "", func(ep *episode.Episode) any { return ep.Model }},
	{"prompt_tokens", "number or nil", "of all turns; nil when the server did not say", nil, func(ep *episode.Episode) any { return reported(ep, ep.Usage.Prompt) }},
	{"completion_tokens", "number or nil", "likewise", nil, func(ep *episode.Episode) any { return reported(ep, ep.Usage.Completion) }},
	{"cost_usd", "number or nil", "nil when not all of it is known", nil, func(ep *episode.Episode) any { return orNil(ep.CostUSD) }},
	{"elapsed", "number", "seconds", 0.0, func(ep *episode.Episode) any { return ep.Elapsed.Seconds() }},
	{"drift", "text", "of the token ids: none, drift, compacted or unknown", "", func(ep *episode.Episode) any {
		if ep.Drift == nil {
			return string(episode.DriftUnknown)
		}
		return string(ep.Drift.Verdict)
	}},
	{"safe_to_train", "true or false", "there are token ids and no drift", false, func(ep *episode.Episode) any {
		return ep.Drift != nil && ep.Drift.Verdict == episode.DriftNone
	}},
	{"tags", "list of texts", "of the task", []string{}, func(ep *episode.Episode) any { return append([]string{}, ep.Task.Tags...) }},
	{"difficulty", "text", "of the task", "", func(ep *episode.Episode) any { return ep.Task.Difficulty }},
	{"meta", "values by name", `the task's other fields: meta.repo == "x"`, map[string]any{}, func(ep *episode.Episode) any {
		meta := map[string]any{}
		_ = json.Unmarshal(ep.Task.Metadata, &meta) // what is not an object has no fields
		return meta
	}},
	{"answer", "text", "the final one", "", func(ep *episode.Episode) any { return ep.Answer }},
	{"fault_class", "text", "of an error outcome: rate_limit, timeout, ...; empty without one", "", func(ep *episode.Episode) any {
		if ep.Fault == nil {
			return ""
		}
		return ep.Fault.Class
	}},
	{"sampling", "fields", "model, reasoning_effort, temperature, top_p and max_tokens, as they were asked for", sampling(episode.Sampling{}),
		func(ep *episode.Episode) any { return sampling(ep.Sampling) }},
}

// examples are the variables with a value of their type, as where.Parse wants them.
func examples() map[string]any {
	types := make(map[string]any, len(variables))
	for _, n := range variables {
		types[n.Name] = n.example
	}
	return types
}

// values are those of an episode that a condition may ask for.
func values(ep *episode.Episode, condition string) map[string]any {
	row := make(map[string]any, len(variables))
	for _, n := range variables {
		if n.of != nil && strings.Contains(condition, n.Name) { // some cost more than the condition itself
			row[n.Name] = n.of(ep)
		} else {
			row[n.Name] = n.example
		}
	}
	return row
}

// sampling are the fields by name; nil is what was left to the server.
func sampling(s episode.Sampling) map[string]any {
	return map[string]any{
		"model": s.Model, "reasoning_effort": s.ReasoningEffort, "temperature": orNil(s.Temperature), "top_p": orNil(s.TopP), "max_tokens": s.MaxTokens,
	}
}

// proven are the fields of a proof by name.
func proven(p *episode.Proof) map[string]any {
	return map[string]any{"gold": orNil(p.Gold), "noop": orNil(p.Noop), "attacks": append([]string{}, p.Passed()...)}
}

func orNil(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func reported(ep *episode.Episode, n int) any {
	if !ep.Usage.Reported {
		return nil
	}
	return n
}
