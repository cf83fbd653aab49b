package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"trajgen/pipeline/episode"
)

// New is the row of an episode. The row shares the episode's texts.
func New(ep *episode.Episode) (Trajectory, error) {
	task, err := newTask(&ep.Task)
	if err != nil {
		return Trajectory{}, fmt.Errorf("row of episode %s: %w", ep.ID, err)
	}
	row := Trajectory{
		SchemaVersion:   episode.SchemaVersion,
		ID:              ep.ID,
		Run:             ep.Run,
		Row:             int64(ep.Row),
		TaskID:          ep.Key.Task,
		Sample:          int32(ep.Key.Sample),
		Seed:            ep.Key.Seed,
		Attempt:         int32(ep.Attempt),
		EarlierAttempts: each(ep.Earlier, newEarlier),
		ResumedTurns:    each(ep.Resumed, func(turn int) int32 { return int32(turn) }),
		Task:            task,
		Distribution:    unlessEmpty(ep.Distribution),
		Toolsets:        ep.Toolsets,
		LogP:            ep.LogP,
		Tools:           each(ep.Tools, func(tool json.RawMessage) string { return string(tool) }),
		Messages:        each(ep.Messages, newMessage),
		Turns:           each(ep.Turns, newTurn),
		Outcome:         string(ep.Outcome),
		Stop:            string(ep.Stop),
		Answer:          ep.Answer,
		Reward:          ep.Reward,
		Rewards: each(ep.Rewards, func(r episode.Reward) Reward {
			return Reward{Name: r.Name, Value: r.Value, Weight: r.Weight, Detail: unlessEmpty(r.Detail)}
		}),
		Usage:     newUsage(ep.Usage),
		Model:     unlessEmpty(ep.Model),
		Sandbox:   newSandbox(&ep.Sandbox),
		Started:   micros(ep.Started),
		ElapsedUS: ep.Elapsed.Microseconds(),
		Phases: Phases{
			OpenUS: ep.Phases.Open.Microseconds(), SetupUS: ep.Phases.Setup.Microseconds(),
			AgentUS: ep.Phases.Agent.Microseconds(), ModelUS: ep.Phases.Model.Microseconds(),
			ToolsUS: ep.Phases.Tools.Microseconds(), VerifyUS: ep.Phases.Verify.Microseconds(),
			CloseUS: ep.Phases.Close.Microseconds(),
		},
	}
	row.Memory, err = jsonText(ep.Memory)
	if err != nil {
		return row, fmt.Errorf("row of episode %s: encode the memory: %w", ep.ID, err)
	}
	row.Recalled, row.Ephemeral = unlessEmpty(ep.Recalled), unlessEmpty(ep.Ephemeral)
	row.SamplingModel, row.SamplingEffort = unlessEmpty(ep.Sampling.Model), unlessEmpty(ep.Sampling.ReasoningEffort)
	row.SamplingTemperature, row.SamplingTopP = ep.Sampling.Temperature, ep.Sampling.TopP
	row.SamplingMaxTokens = unlessZero(int64(ep.Sampling.MaxTokens))
	row.Compactions = each(ep.Compactions, newCompaction)
	row.CostUSD = ep.CostUSD
	row.tokenColumns(ep)
	if ep.User != nil {
		row.Questions, row.UserModel, row.UserUsage = new(int32(ep.User.Questions)), unlessEmpty(ep.User.Model), newUsage(ep.User.Usage)
	}
	if usage, asked := ep.ApproverUsage(); asked {
		row.ApproverUsage = newUsage(usage)
	}
	if ep.Fault != nil {
		outcome := string(ep.Fault.Outcome)
		row.FaultOutcome, row.FaultClass, row.FaultMessage = &outcome, &ep.Fault.Class, &ep.Fault.Message
	}
	if ep.Reward != nil && math.IsNaN(*ep.Reward) {
		return row, fmt.Errorf("row of episode %s: reward is not a number", ep.ID)
	}
	return row, nil
}

func newTask(task *episode.Task) (Task, error) {
	row := Task{
		System:       unlessEmpty(task.System),
		Prompt:       each(task.Prompt, newMessage),
		Setup:        unlessEmpty(task.Setup),
		Image:        unlessEmpty(task.Image),
		Cwd:          unlessEmpty(task.Cwd),
		Network:      unlessEmpty(task.Network),
		Toolsets:     task.Toolsets,
		Distribution: unlessEmpty(task.Distribution),
		LimitTurns:   unlessZero(int32(task.Limits.Turns)),
		LimitTokens:  unlessZero(int64(task.Limits.Tokens)),
		LimitTimeUS:  unlessZero(task.Limits.Time.Microseconds()),
		Tags:         task.Tags,
		Difficulty:   unlessEmpty(task.Difficulty),
		Metadata:     unlessEmpty(string(task.Metadata)),
	}
	row.Env = pairs(task.Env)
	var err error
	if row.Memory, err = jsonText(task.Memory); err != nil {
		return row, fmt.Errorf("encode the memory: %w", err)
	}
	if row.User, err = jsonText(task.User); err != nil {
		return row, fmt.Errorf("encode the user: %w", err)
	}
	if len(task.Verify) > 0 {
		text, err := json.Marshal(task.Verify)
		if err != nil {
			return row, fmt.Errorf("encode the checks: %w", err)
		}
		row.Verify = unlessEmpty(string(text))
	}
	return row, nil
}

// Calls are the rows of an episode's calls.
func Calls(ep *episode.Episode) []ToolCall {
	return each(ep.Calls, func(call episode.ToolCall) ToolCall {
		var verdict episode.Verdict
		if call.Verdict != nil {
			verdict = *call.Verdict
		}
		return ToolCall{
			SchemaVersion: episode.SchemaVersion,
			EpisodeID:     ep.ID,
			Run:           ep.Run,
			Row:           int64(ep.Row),
			TaskID:        ep.Key.Task,
			Sample:        int32(ep.Key.Sample),
			Attempt:       int32(ep.Attempt),
			Turn:          int32(call.Turn),
			Index:         int32(call.Index),
			CallID:        call.ID,
			ParentID:      unlessEmpty(call.Parent),
			Tool:          call.Name,
			Toolset:       unlessEmpty(call.Toolset),
			RawArguments:  call.RawArguments,
			Arguments:     unlessEmpty(string(call.Arguments)),
			Coerced:       call.Coerced,
			Repaired:      call.Repaired,
			Rewritten:     call.Rewritten,
			Via:           unlessEmpty(call.Via),

			Verdict:         unlessEmpty(verdict.Verdict),
			VerdictRule:     unlessEmpty(verdict.Rule),
			VerdictReason:   unlessEmpty(verdict.Reason),
			VerdictDecision: unlessEmpty(verdict.Decision),

			Status:      string(call.Status),
			ErrorClass:  unlessEmpty(call.ErrorClass),
			Result:      call.Result,
			Truncated:   call.Truncated,
			ResultBytes: int64(call.ResultBytes),
			ExitCode:    narrow(call.ExitCode),
			Stored:      unlessEmpty(call.Stored),
			Untrusted:   unlessEmpty(call.Untrusted),
			Runner:      call.Runner,
			Masked:      call.Masked,
			SameAs:      unlessEmpty(call.SameAs),
			Notice:      unlessEmpty(call.Notice),
			Started:     micros(call.Started),
			ElapsedUS:   call.Elapsed.Microseconds(),
			SandboxUS:   call.SandboxTime.Microseconds(),
			Outcome:     string(ep.Outcome),
		}
	})
}

// narrow makes a column's integer of one; nil stays.
func narrow(n *int) *int32 {
	if n == nil {
		return nil
	}
	return new(int32(*n))
}

func newMessage(m episode.Message) Message {
	return Message{
		Role: m.Role, Content: m.Content, Reasoning: unlessEmpty(m.Reasoning), Details: unlessEmpty(string(m.ReasoningDetails)),
		ToolCallID: unlessEmpty(m.ToolCallID), Name: unlessEmpty(m.Name), Harness: m.Harness,
		ToolCalls: each(m.Calls, func(call episode.Call) MessageCall {
			return MessageCall{ID: call.ID, Name: call.Name, Arguments: call.Arguments, Cut: call.Cut, Sent: unlessEmpty(call.Sent)}
		}),
	}
}

func newTurn(t episode.Turn) Turn {
	return Turn{
		Index: int32(t.Index), Message: int32(t.Message), Model: unlessEmpty(t.Model), RequestID: unlessEmpty(t.RequestID),
		FinishReason: t.FinishReason, Usage: newUsage(t.Usage), Started: micros(t.Started),
		ElapsedUS: t.Elapsed.Microseconds(), Retries: each(t.Retries, newFault), Repairs: t.Repairs, Raw: unlessEmpty(t.Raw),
		WaitedUS: t.Waited.Microseconds(), Fallback: unlessEmpty(t.Fallback), Endpoint: unlessEmpty(t.Endpoint), Provider: unlessEmpty(t.Provider), SystemFingerprint: unlessEmpty(t.SystemFingerprint),
		WeightVersion: unlessEmpty(t.WeightVersion), ServiceTier: unlessEmpty(t.ServiceTier),
		NativeFinishReason: unlessEmpty(t.NativeFinishReason), Cost: t.Cost,
	}
}

func newFault(f episode.Fault) Fault {
	return Fault{Outcome: string(f.Outcome), Class: f.Class, Message: f.Message, PauseUS: unlessZero(f.Pause.Microseconds())}
}

func newEarlier(a episode.Attempt) EarlierAttempt {
	row := EarlierAttempt{
		Attempt: int32(a.Attempt), Outcome: string(a.Outcome), Started: micros(a.Started), ElapsedUS: a.Elapsed.Microseconds(),
		Turns: int32(a.Turns), Usage: newUsage(a.Usage), CostUSD: a.CostUSD, AtOnce: a.AtOnce,
	}
	if a.Fault != nil {
		row.Class, row.Message = &a.Fault.Class, &a.Fault.Message
	}
	if a.Differed != nil {
		text, err := json.Marshal(a.Differed)
		if err != nil { // not of strings and numbers
			panic(err)
		}
		row.Differed = new(string(text))
	}
	return row
}

func newCompaction(c episode.Compaction) Compaction {
	row := Compaction{
		Turn: int32(c.Turn), Strategy: c.Strategy, Refused: c.Refused, Before: int64(c.Before), After: int64(c.After), Counted: int64(c.Counted),
		Replaced: each(c.Replaced, func(r episode.Replacement) Replacement { return Replacement{int32(r.Message), r.Content} }),
		Summary:  unlessEmpty(c.Summary), Model: unlessEmpty(c.Model), Failed: unlessEmpty(c.Failed),
	}
	if c.To > c.From {
		row.From, row.To = new(int32(c.From)), new(int32(c.To))
	}
	if c.Usage != nil {
		row.Usage = newUsage(*c.Usage)
	}
	return row
}

func newUsage(u episode.Usage) Usage {
	if !u.Reported {
		return Usage{}
	}
	count := func(n int) *int64 { return new(int64(n)) }
	return Usage{count(u.Prompt), count(u.Completion), count(u.Reasoning), count(u.Cached)}
}

// jsonText is null for nil.
func jsonText[T any](value *T) (*string, error) {
	if value == nil {
		return nil, nil
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return new(string(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))), nil
}

// each maps a slice; it keeps nil.
func each[From, To any](from []From, convert func(From) To) []To {
	if from == nil {
		return nil
	}
	to := make([]To, len(from))
	for i, f := range from {
		to[i] = convert(f)
	}
	return to
}

// unlessEmpty is null for a text that is absent.
func unlessEmpty(s string) *string { return unlessZero(s) }

// unlessZero is null for what is written as a zero value but means "none".
func unlessZero[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// micros is null for a time that was not set: the year 1 does not fit.
func newSandbox(s *episode.Sandbox) Sandbox {
	return Sandbox{
		Backend: unlessEmpty(s.Backend), Level: unlessEmpty(s.Level), Limits: pairs(s.Limits), Opened: s.Opened, Forked: s.Forked,
		Connections: each(s.Connections, func(c episode.Connection) Connection {
			return Connection{
				Host: c.Host, Port: int32(c.Port), Address: unlessEmpty(c.Address), Started: micros(c.Started), Sent: c.Sent, Received: c.Received,
				Refused: unlessEmpty(c.Refused), Failed: unlessEmpty(c.Failed),
			}
		}),
	}
}

// pairs returns a map's entries, sorted.
func pairs(m map[string]string) []Pair {
	var rows []Pair
	for _, key := range slices.Sorted(maps.Keys(m)) {
		rows = append(rows, Pair{Key: key, Value: m[key]})
	}
	return rows
}

func micros(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	us := t.UnixMicro()
	return &us
}
