package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

// inspectSample is an EvalSample and its EvalSampleSummary, with what the header adds up.
type inspectSample struct {
	document, brief object
	epoch           int
	scores          map[string]inspectSampleScore
	usage           map[string]inspectUsage
	cut             bool // some model events do not tell what the model was sent
}

type inspectSampleScore struct {
	Value       float64 `json:"value"`
	Answer      string  `json:"answer,omitempty"`
	Explanation string  `json:"explanation,omitempty"`
}

// inspectReward is the score that the reward is. A check of that name gets another.
const inspectReward = "reward"

func newInspectSample(id string, epoch int, ep *episode.Episode) *inspectSample {
	m := newInspectMessages(ep)
	events, pool := m.events()
	s := &inspectSample{epoch: epoch, scores: inspectScores(ep), usage: inspectModelUsage(ep), cut: m.cut}
	prompt := asked(ep)
	asks, target := question(prompt), answerOf(&ep.Task)
	input := any(asks)
	if len(prompt) > 1 && len(ep.Messages) >= len(prompt) {
		input = m.all[:len(prompt)]
	}
	output := object{{"model", ""}, {"choices", []any{}}, {"completion", ""}}
	if n := len(ep.Turns); n > 0 {
		output = m.output(n - 1)
	}
	var sandbox, failed, limit object
	if ep.Sandbox.Backend != "" {
		sandbox = object{{"type", ep.Sandbox.Backend}}
	}
	failure := ""
	if ep.Fault != nil {
		failure, failed = faultText(ep.Fault), inspectFault(ep.Fault)
	}
	var earlier []object
	for _, attempt := range ep.Earlier {
		if attempt.Fault != nil {
			earlier = append(earlier, inspectFault(attempt.Fault))
		}
	}
	limitType, limitValue := inspectLimit(ep)
	if limitType != "" {
		limit = object{{"type", limitType}, {"limit", limitValue}}
	}
	var started any
	if !ep.Started.IsZero() {
		started = inspectTime(ep.Started)
	}
	times := object{
		{"model_usage", s.usage},
		{"started_at", started},
		{"completed_at", completed(ep.Started, ep.Elapsed)},
		{"total_time", ep.Elapsed.Seconds()},
		{"working_time", (ep.Elapsed - waited(ep)).Seconds()},
		{"uuid", ep.ID},
	}
	s.document = slices.Concat(object{
		{"id", id},
		{"epoch", epoch},
		{"input", input},
		{"target", target},
		{"sandbox", some(sandbox)},
		{"setup", some(ep.Task.Setup)},
		{"messages", m.all},
		{"output", output},
		{"scores", some(s.scores)},
		{"metadata", inspectMetadata(ep)},
		{"store", object{}},
		{"events", events},
		{"events_data", pool},
	}, times, object{
		{"error", some(failed)},
		{"error_retries", some(earlier)},
		{"attachments", object{}},
		{"limit", some(limit)},
	})
	s.brief = slices.Concat(object{
		{"id", id},
		{"epoch", epoch},
		{"input", thin(asks)},
		{"target", thin(target)},
		{"metadata", object{{"outcome", ep.Outcome}, {"stop", ep.Stop}}},
		{"scores", some(thinScores(s.scores))},
	}, times, object{
		{"error", some(thin(failure))},
		{"limit", some(limitType)},
		{"retries", some(len(earlier))},
		{"completed", true},
		{"message_count", len(m.all)},
	})
	return s
}

func faultText(f *episode.Fault) string { return string(f.Outcome) + ": " + f.Class + ": " + f.Message }

func inspectFault(f *episode.Fault) object {
	return object{{"message", faultText(f)}, {"traceback", ""}, {"traceback_ansi", ""}}
}

// waited is how long nothing was under way, which does not count as working time.
func waited(ep *episode.Episode) (sum time.Duration) {
	for i := range ep.Turns {
		sum += ep.Turns[i].Waited
	}
	return min(sum, ep.Elapsed)
}

func inspectScores(ep *episode.Episode) map[string]inspectSampleScore {
	if ep.Reward == nil {
		return nil
	}
	scores := map[string]inspectSampleScore{inspectReward: {Value: *ep.Reward, Answer: ep.Answer}}
	for i, r := range ep.Rewards {
		name := cmp.Or(r.Name, "check")
		if _, taken := scores[name]; taken {
			name = fmt.Sprintf("%s (check %d)", name, i+1)
		}
		scores[name] = inspectSampleScore{Value: r.Value, Explanation: r.Detail}
	}
	return scores
}

// inspectModelUsage is that of the episode and its subagents by model; turns whose server did not count are in none.
func inspectModelUsage(ep *episode.Episode) map[string]inspectUsage {
	sums, cost := map[string]episode.Usage{}, new(float64)
	for each := range ep.Tree() {
		if each.CostUSD == nil {
			cost = nil
		} else if cost != nil {
			*cost += *each.CostUSD
		}
		for i := range each.Turns {
			t := &each.Turns[i]
			if !t.Usage.Reported {
				continue
			}
			name := cmp.Or(t.Model, each.Model, each.Sampling.Model, "unknown")
			u := sums[name]
			u.Prompt, u.Completion = u.Prompt+t.Usage.Prompt, u.Completion+t.Usage.Completion
			u.Cached, u.Reasoning = u.Cached+t.Usage.Cached, u.Reasoning+t.Usage.Reasoning
			sums[name] = u
		}
	}
	used := map[string]inspectUsage{}
	for name, u := range sums {
		usage := newInspectUsage(u)
		if len(sums) == 1 {
			usage.TotalCost = cost
		}
		used[name] = usage
	}
	return used
}

func inspectMetadata(ep *episode.Episode) map[string]any {
	m := map[string]any{
		"task_id": ep.Key.Task, "row": ep.Row, "sample": ep.Key.Sample, "seed": ep.Key.Seed, "run": ep.Run, "attempt": ep.Attempt,
		"outcome": ep.Outcome, "stop": ep.Stop, "toolsets": ep.Toolsets, "distribution": ep.Distribution, "log_p": ep.LogP, "tools": shallowAll(ep.Tools),
	}
	if len(ep.Task.Metadata) > 0 {
		m["task"] = shallow(ep.Task.Metadata)
	}
	if len(ep.Task.Tags) > 0 {
		m["tags"] = ep.Task.Tags
	}
	if ep.Task.Difficulty != "" {
		m["difficulty"] = ep.Task.Difficulty
	}
	if ep.Drift != nil {
		m["drift"] = ep.Drift.Verdict
	}
	return m
}

// inspectLimit is the limit at which an episode ended; empty when it ended at none.
func inspectLimit(ep *episode.Episode) (kind string, limit float64) {
	used := float64(ep.Usage.Prompt + ep.Usage.Completion)
	limits := ep.Task.Limits
	switch ep.Stop {
	case episode.StopMaxTurns:
		return "message", float64(cmp.Or(limits.Turns, len(ep.Turns)))
	case episode.StopMaxTokens, episode.StopLength:
		return "token", cmp.Or(float64(limits.Tokens), used)
	case episode.StopMaxCost:
		if ep.CostUSD == nil {
			return "cost", 0
		}
		return "cost", *ep.CostUSD
	case episode.StopTimeout:
		return "time", cmp.Or(limits.Time, ep.Phases.Agent).Seconds()
	case episode.StopContext:
		return "context", used
	case episode.StopRepeating:
		return "custom", float64(len(ep.Calls))
	}
	return "", 0
}

func thinScores(scores map[string]inspectSampleScore) map[string]inspectSampleScore {
	short := map[string]inspectSampleScore{}
	for name, score := range scores {
		short[name] = inspectSampleScore{score.Value, thin(score.Answer), thin(score.Explanation)}
	}
	return short
}

// thin cuts a text to what a summary shows.
func thin(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	cut := text[:most]
	for len(cut) > 0 && !utf8.RuneStart(text[len(cut)]) {
		cut = cut[:len(cut)-1]
	}
	return strings.TrimRight(cut, " \n") + "…"
}
