package export

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

// inspectSample is an EvalSample.
type inspectSample struct {
	ID           string                        `json:"id"`
	Epoch        int                           `json:"epoch"`
	Input        any                           `json:"input"`
	Target       string                        `json:"target"`
	Sandbox      *inspectSandbox               `json:"sandbox,omitempty"`
	Setup        string                        `json:"setup,omitempty"`
	Messages     []inspectMessage              `json:"messages"`
	Output       inspectOutput                 `json:"output"`
	Scores       map[string]inspectSampleScore `json:"scores,omitempty"`
	Metadata     map[string]any                `json:"metadata"`
	Store        struct{}                      `json:"store"`
	Events       []any                         `json:"events"`
	EventsData   inspectPool                   `json:"events_data"`
	ModelUsage   map[string]inspectUsage       `json:"model_usage"`
	StartedAt    string                        `json:"started_at,omitempty"`
	CompletedAt  string                        `json:"completed_at,omitempty"`
	TotalTime    float64                       `json:"total_time"`
	WorkingTime  float64                       `json:"working_time"`
	UUID         string                        `json:"uuid"`
	Error        *inspectFault                 `json:"error,omitempty"`
	ErrorRetries []inspectFault                `json:"error_retries,omitempty"`
	Attachments  struct{}                      `json:"attachments"`
	Limit        *inspectLimit                 `json:"limit,omitempty"`

	question string
	cut      bool // some model events do not tell what the model was sent
}

type inspectSandbox struct {
	Type string `json:"type"`
}

type inspectSampleScore struct {
	Value       float64 `json:"value"`
	Answer      string  `json:"answer,omitempty"`
	Explanation string  `json:"explanation,omitempty"`
}

type inspectFault struct {
	Message       string `json:"message"`
	Traceback     string `json:"traceback"`
	TracebackANSI string `json:"traceback_ansi"`
}

type inspectLimit struct {
	Type  string  `json:"type"`
	Limit float64 `json:"limit"`
}

// inspectReward is the score that the reward is. A check of that name is told apart.
const inspectReward = "reward"

func newInspectSample(id string, epoch int, ep *episode.Episode) *inspectSample {
	m := newInspectMessages(ep)
	s := &inspectSample{
		ID: id, Epoch: epoch, Target: answerOf(&ep.Task), Setup: ep.Task.Setup,
		Messages: m.all, Output: inspectOutput{Choices: []inspectChoice{}}, Scores: inspectScores(ep), Metadata: inspectMetadata(ep),
		ModelUsage: inspectModelUsage(ep), TotalTime: ep.Elapsed.Seconds(), WorkingTime: (ep.Elapsed - waited(ep)).Seconds(),
		UUID: ep.ID, Limit: newInspectLimit(ep), question: question(asked(ep)),
	}
	s.Input = s.question
	if prompt := asked(ep); len(prompt) > 1 && len(ep.Messages) >= len(prompt) {
		s.Input = m.all[:len(prompt)]
	}
	if ep.Sandbox.Backend != "" {
		s.Sandbox = &inspectSandbox{ep.Sandbox.Backend}
	}
	if !ep.Started.IsZero() {
		s.StartedAt, s.CompletedAt = inspectTime(ep.Started), inspectTime(ep.Started.Add(ep.Elapsed))
	}
	if ep.Fault != nil {
		s.Error = newInspectFault(ep.Fault)
	}
	for _, earlier := range ep.Earlier {
		if earlier.Fault != nil {
			s.ErrorRetries = append(s.ErrorRetries, *newInspectFault(earlier.Fault))
		}
	}
	s.Events, s.EventsData = m.events()
	s.cut = m.cut
	if n := len(ep.Turns); n > 0 {
		s.Output = m.output(n - 1)
	}
	return s
}

func newInspectFault(f *episode.Fault) *inspectFault {
	return &inspectFault{Message: string(f.Outcome) + ": " + f.Class + ": " + f.Message}
}

// waited is how long nothing was under way, which is no working time.
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

// inspectModelUsage is by model; turns whose server did not count are in none.
func inspectModelUsage(ep *episode.Episode) map[string]inspectUsage {
	sums := map[string]episode.Usage{}
	for i := range ep.Turns {
		t := &ep.Turns[i]
		if !t.Usage.Reported {
			continue
		}
		name := cmp.Or(t.Model, ep.Model, ep.Sampling.Model, "unknown")
		u := sums[name]
		u.Prompt, u.Completion = u.Prompt+t.Usage.Prompt, u.Completion+t.Usage.Completion
		u.Cached, u.Reasoning = u.Cached+t.Usage.Cached, u.Reasoning+t.Usage.Reasoning
		sums[name] = u
	}
	used := map[string]inspectUsage{}
	for name, u := range sums {
		usage := newInspectUsage(u)
		if len(sums) == 1 {
			usage.TotalCost = ep.CostUSD
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

// newInspectLimit is the limit at which an episode ended; nil when it ended at none.
func newInspectLimit(ep *episode.Episode) *inspectLimit {
	used := float64(ep.Usage.Prompt + ep.Usage.Completion)
	limits := ep.Task.Limits
	switch ep.Stop {
	case episode.StopMaxTurns:
		return &inspectLimit{"message", float64(cmp.Or(limits.Turns, len(ep.Turns)))}
	case episode.StopMaxTokens, episode.StopLength:
		return &inspectLimit{"token", cmp.Or(float64(limits.Tokens), used)}
	case episode.StopMaxCost:
		cost := 0.0
		if ep.CostUSD != nil {
			cost = *ep.CostUSD
		}
		return &inspectLimit{"cost", cost}
	case episode.StopTimeout:
		return &inspectLimit{"time", cmp.Or(limits.Time, ep.Phases.Agent).Seconds()}
	case episode.StopContext:
		return &inspectLimit{"context", used}
	case episode.StopRepeating:
		return &inspectLimit{"custom", float64(len(ep.Calls))}
	}
	return nil
}

// inspectBrief is an EvalSampleSummary.
type inspectBrief struct {
	ID           string                        `json:"id"`
	Epoch        int                           `json:"epoch"`
	Input        string                        `json:"input"`
	Target       string                        `json:"target"`
	Metadata     map[string]any                `json:"metadata"`
	Scores       map[string]inspectSampleScore `json:"scores,omitempty"`
	ModelUsage   map[string]inspectUsage       `json:"model_usage"`
	StartedAt    string                        `json:"started_at,omitempty"`
	CompletedAt  string                        `json:"completed_at,omitempty"`
	TotalTime    float64                       `json:"total_time"`
	WorkingTime  float64                       `json:"working_time"`
	UUID         string                        `json:"uuid"`
	Error        string                        `json:"error,omitempty"`
	Limit        string                        `json:"limit,omitempty"`
	Retries      int                           `json:"retries,omitempty"`
	Completed    bool                          `json:"completed"`
	MessageCount int                           `json:"message_count"`
}

func (s *inspectSample) brief() inspectBrief {
	b := inspectBrief{
		ID: s.ID, Epoch: s.Epoch, Input: thin(s.question), Target: thin(s.Target), ModelUsage: s.ModelUsage,
		Metadata:  map[string]any{"outcome": s.Metadata["outcome"], "stop": s.Metadata["stop"]},
		StartedAt: s.StartedAt, CompletedAt: s.CompletedAt, TotalTime: s.TotalTime, WorkingTime: s.WorkingTime, UUID: s.UUID,
		Retries: len(s.ErrorRetries), Completed: true, MessageCount: len(s.Messages),
	}
	if s.Error != nil {
		b.Error = thin(s.Error.Message)
	}
	if s.Limit != nil {
		b.Limit = s.Limit.Type
	}
	if len(s.Scores) > 0 {
		b.Scores = map[string]inspectSampleScore{}
		for name, score := range s.Scores {
			score.Answer, score.Explanation = thin(score.Answer), thin(score.Explanation)
			b.Scores[name] = score
		}
	}
	return b
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
