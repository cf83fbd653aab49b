package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"trajgen/pipeline/episode"
)

// Lost is what an episode loses on its way through a row. Everything else comes back as it was, but that an empty list
// and none are one.
var Lost = []string{
	"what is under a microsecond in times and durations",
	"the name by which a summary's model was asked for",
	"which call an approver's tokens were spent on (their sum is kept)",
	"the pause after a fault that ended an episode or an attempt",
	"how many recorded turns of an attempt were not played again",
}

// Episode is the inverse of New and Calls: it makes the episode of a row and of its calls, but for what Lost names. A row
// may come from a stranger: what no episode can hold is an error that names everything wrong at once.
func (row *Trajectory) Episode(calls []ToolCall) (*episode.Episode, error) {
	b := &back{}
	ep := &episode.Episode{
		Schema: int(row.SchemaVersion), ID: row.ID, Row: int(row.Row), Run: row.Run, Attempt: int(row.Attempt),
		Key:          episode.Key{Seed: row.Seed, Task: row.TaskID, Sample: int(row.Sample)},
		Earlier:      some(row.EarlierAttempts, b.earlier),
		Resumed:      some(row.ResumedTurns, func(turn int32) int { return int(turn) }),
		Task:         b.task(row),
		Distribution: orZero(row.Distribution), Toolsets: same(row.Toolsets), LogP: row.LogP,
		Tools:       some(row.Tools, func(tool string) json.RawMessage { return b.raw("tools", &tool) }),
		Messages:    some(row.Messages, b.message),
		Turns:       some(row.Turns, b.turn),
		Calls:       some(calls, b.call),
		Compactions: some(row.Compactions, b.compaction),
		Recalled:    orZero(row.Recalled), Ephemeral: orZero(row.Ephemeral),
		Outcome: episode.Outcome(row.Outcome), Stop: episode.Stop(row.Stop), Answer: row.Answer, Reward: row.Reward,
		Rewards: some(row.Rewards, func(r Reward) episode.Reward {
			return episode.Reward{Name: r.Name, Value: r.Value, Weight: r.Weight, Detail: orZero(r.Detail)}
		}),
		Usage: row.Usage.episode(), CostUSD: row.CostUSD, Model: orZero(row.Model), Sandbox: b.sandbox(&row.Sandbox),
		Started: b.time(row.Started), Elapsed: b.duration(row.ElapsedUS),
		Phases: episode.Phases{
			Open: b.duration(row.Phases.OpenUS), Setup: b.duration(row.Phases.SetupUS), Agent: b.duration(row.Phases.AgentUS),
			Model: b.duration(row.Phases.ModelUS), Tools: b.duration(row.Phases.ToolsUS), Verify: b.duration(row.Phases.VerifyUS),
			Close: b.duration(row.Phases.CloseUS),
		},
		Sampling: episode.Sampling{
			Model: orZero(row.SamplingModel), ReasoningEffort: orZero(row.SamplingEffort), Temperature: row.SamplingTemperature,
			TopP: row.SamplingTopP, MaxTokens: int(orZero(row.SamplingMaxTokens)),
		},
	}
	decode(b, "memory", row.Memory, &ep.Memory)
	if row.Questions != nil {
		ep.User = &episode.UserTrace{Questions: int(*row.Questions), Model: orZero(row.UserModel), Usage: row.UserUsage.episode()}
	}
	if usage := row.ApproverUsage.episode(); usage.Reported {
		for i := range ep.Calls {
			if verdict := ep.Calls[i].Verdict; verdict != nil {
				verdict.Usage = &usage
				break
			}
		}
	}
	if row.FaultOutcome != nil {
		ep.Fault = &episode.Fault{Outcome: episode.Outcome(*row.FaultOutcome), Class: orZero(row.FaultClass), Message: orZero(row.FaultMessage)}
	}
	b.tokens(row, ep)
	if err := errors.Join(b.wrong...); err != nil {
		return nil, fmt.Errorf("row of episode %.60q: %w", row.ID, err)
	}
	return ep, nil
}

// back gathers what is wrong with a row.
type back struct{ wrong []error }

func (b *back) bad(format string, args ...any) {
	if len(b.wrong) < 20 {
		b.wrong = append(b.wrong, fmt.Errorf(format, args...))
	}
}

func (b *back) task(row *Trajectory) episode.Task {
	t := &row.Task
	task := episode.Task{
		ID: row.TaskID, Row: int(row.Row), System: orZero(t.System), Prompt: some(t.Prompt, b.message), Setup: orZero(t.Setup),
		Image: orZero(t.Image), Cwd: orZero(t.Cwd), Network: orZero(t.Network), Env: entries(t.Env),
		Toolsets: same(t.Toolsets), Distribution: orZero(t.Distribution),
		Limits: episode.Limits{Turns: int(orZero(t.LimitTurns)), Tokens: int(orZero(t.LimitTokens)), Time: b.duration(orZero(t.LimitTimeUS))},
		Tags:   same(t.Tags), Difficulty: orZero(t.Difficulty), Metadata: b.raw("task.metadata", t.Metadata),
	}
	decode(b, "task.memory", t.Memory, &task.Memory)
	decode(b, "task.user", t.User, &task.User)
	decode(b, "task.verify", t.Verify, &task.Verify)
	return task
}

func (b *back) message(m Message) episode.Message {
	return episode.Message{
		Role: m.Role, Content: m.Content, Reasoning: orZero(m.Reasoning), ReasoningDetails: b.raw("messages.reasoning_details", m.Details),
		ToolCallID: orZero(m.ToolCallID), Name: orZero(m.Name), Harness: m.Harness,
		Calls: some(m.ToolCalls, func(c MessageCall) episode.Call {
			return episode.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Cut: c.Cut, Sent: orZero(c.Sent)}
		}),
	}
}

func (b *back) turn(t Turn) episode.Turn {
	return episode.Turn{
		Index: int(t.Index), Message: int(t.Message), Model: orZero(t.Model), RequestID: orZero(t.RequestID), Endpoint: orZero(t.Endpoint),
		Fallback: orZero(t.Fallback), FinishReason: t.FinishReason, Usage: t.Usage.episode(), Started: b.time(t.Started),
		Elapsed: b.duration(t.ElapsedUS), Waited: b.duration(t.WaitedUS), Repairs: same(t.Repairs), Raw: orZero(t.Raw),
		Retries: some(t.Retries, func(f Fault) episode.Fault {
			return episode.Fault{Outcome: episode.Outcome(f.Outcome), Class: f.Class, Message: f.Message, Pause: b.duration(orZero(f.PauseUS))}
		}),
		Service: episode.Service{
			Provider: orZero(t.Provider), SystemFingerprint: orZero(t.SystemFingerprint), WeightVersion: orZero(t.WeightVersion),
			ServiceTier: orZero(t.ServiceTier), NativeFinishReason: orZero(t.NativeFinishReason), Cost: t.Cost,
		},
	}
}

func (b *back) earlier(a EarlierAttempt) episode.Attempt {
	attempt := episode.Attempt{
		Attempt: int(a.Attempt), Outcome: episode.Outcome(a.Outcome), Started: b.time(a.Started), Elapsed: b.duration(a.ElapsedUS),
		Turns: int(a.Turns), Usage: a.Usage.episode(), CostUSD: a.CostUSD, AtOnce: a.AtOnce,
	}
	if a.Class != nil {
		attempt.Fault = &episode.Fault{Outcome: attempt.Outcome, Class: *a.Class, Message: orZero(a.Message)}
	}
	decode(b, "earlier_attempts.differed", a.Differed, &attempt.Differed)
	return attempt
}

func (b *back) compaction(c Compaction) episode.Compaction {
	compaction := episode.Compaction{
		Turn: int(c.Turn), Strategy: c.Strategy, Refused: c.Refused, Before: int(c.Before), After: int(c.After), Counted: int(c.Counted),
		Replaced: some(c.Replaced, func(r Replacement) episode.Replacement {
			return episode.Replacement{Message: int(r.Message), Content: r.Content}
		}),
		From: int(orZero(c.From)), To: int(orZero(c.To)), Summary: orZero(c.Summary), Model: orZero(c.Model), Failed: orZero(c.Failed),
	}
	if usage := c.Usage.episode(); usage.Reported {
		compaction.Usage = &usage
	}
	return compaction
}

func (b *back) sandbox(s *Sandbox) episode.Sandbox {
	return episode.Sandbox{
		Backend: orZero(s.Backend), Level: orZero(s.Level), Limits: entries(s.Limits), Opened: s.Opened, Forked: s.Forked,
		Connections: some(s.Connections, func(c Connection) episode.Connection {
			return episode.Connection{
				Host: c.Host, Port: int(c.Port), Address: orZero(c.Address), Started: b.time(c.Started), Sent: c.Sent, Received: c.Received,
				Refused: orZero(c.Refused), Failed: orZero(c.Failed),
			}
		}),
	}
}

func (b *back) call(c ToolCall) episode.ToolCall {
	call := episode.ToolCall{
		ID: c.CallID, Parent: orZero(c.ParentID), Turn: int(c.Turn), Index: int(c.Index), Name: c.Tool, Toolset: orZero(c.Toolset),
		RawArguments: c.RawArguments, Arguments: b.raw("arguments", c.Arguments), Coerced: same(c.Coerced), Repaired: c.Repaired,
		Rewritten: same(c.Rewritten), Via: orZero(c.Via), Status: episode.CallStatus(c.Status), ErrorClass: orZero(c.ErrorClass),
		Result: c.Result, Truncated: c.Truncated, ResultBytes: int(c.ResultBytes), Stored: orZero(c.Stored), Untrusted: orZero(c.Untrusted),
		Runner: c.Runner, Masked: same(c.Masked), SameAs: orZero(c.SameAs), Notice: orZero(c.Notice),
		Started: b.time(c.Started), Elapsed: b.duration(c.ElapsedUS), SandboxTime: b.duration(c.SandboxUS),
	}
	if c.ExitCode != nil {
		call.ExitCode = new(int(*c.ExitCode))
	}
	if c.Verdict != nil || c.VerdictRule != nil || c.VerdictReason != nil || c.VerdictDecision != nil {
		call.Verdict = &episode.Verdict{
			Verdict: orZero(c.Verdict), Rule: orZero(c.VerdictRule), Reason: orZero(c.VerdictReason), Decision: orZero(c.VerdictDecision),
		}
	}
	return call
}

func (u Usage) episode() episode.Usage {
	if u.Prompt == nil && u.Completion == nil {
		return episode.Usage{}
	}
	return episode.Usage{
		Prompt: int(orZero(u.Prompt)), Completion: int(orZero(u.Completion)), Reasoning: int(orZero(u.Reasoning)),
		Cached: int(orZero(u.Cached)), Reported: true,
	}
}

// raw is JSON that stays the text that it is.
func (b *back) raw(column string, text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	if !json.Valid([]byte(*text)) {
		b.bad("%s holds %.40q, which is not JSON", column, *text)
		return nil
	}
	return json.RawMessage(*text)
}

// decode reads what is kept as JSON; null stays what it is.
func decode[T any](b *back, column string, text *string, to *T) {
	if text == nil {
		return
	}
	if err := json.Unmarshal([]byte(*text), to); err != nil {
		b.bad("%s holds %.40q: %w", column, *text, err)
	}
}

// The first and the last time that JSON can write.
var earliest, latest = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func (b *back) time(micros *int64) time.Time {
	if micros == nil {
		return time.Time{}
	}
	at := time.UnixMicro(*micros).UTC()
	if at.Before(earliest) || at.After(latest) {
		b.bad("a time is %d microseconds after 1970 (want the years 0 to 9999)", *micros)
	}
	return at
}

func (b *back) duration(micros int64) time.Duration {
	if micros > math.MaxInt64/1000 || micros < math.MinInt64/1000 {
		b.bad("a duration is %d microseconds (want at most %d)", micros, math.MaxInt64/1000)
		return 0
	}
	return time.Duration(micros) * time.Microsecond
}

// some converts a list; an empty one is nil.
func some[From, To any](from []From, convert func(From) To) []To {
	if len(from) == 0 {
		return nil
	}
	return each(from, convert)
}

func same[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func orZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

func entries(list []Pair) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]string, len(list))
	for _, pair := range list {
		m[pair.Key] = pair.Value
	}
	return m
}
