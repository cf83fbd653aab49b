package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"trajgen/outputs/sinktest"
	"trajgen/pipeline/episode"
)

type object = map[string]any

// arrowRows reads a table with the Arrow library, which shares no code with the one that wrote it.
func arrowRows(t *testing.T, dir, table string) (rows []object) {
	t.Helper()
	for _, path := range parts(t, dir, table) {
		rows = append(rows, arrowFile(t, path)...)
	}
	return rows
}

// arrowFile reads one Parquet file.
func arrowFile(t *testing.T, path string) (rows []object) {
	t.Helper()
	f, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	read, err := r.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer read.Release()
	records := array.NewTableReader(read, 100)
	defer records.Release()
	for records.Next() {
		text, err := records.Record().MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var some []object
		decode(t, text, &some)
		rows = append(rows, some...)
	}
	return rows
}

// decode keeps numbers as they are written: a uint64 has no place in a float64.
func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil {
		t.Fatal(err)
	}
}

// plain turns what a test wants into the same shape as what arrowRows gives.
func plain(t *testing.T, rows []object) (same []object) {
	t.Helper()
	text, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, text, &same)
	return same
}

func TestArrowReadsEveryValue(t *testing.T) {
	episodes := sinktest.Episodes(32)
	sinktest.Plant(episodes[len(episodes)/2:])
	large := sinktest.Episode(500, 0)
	large.Messages[1].Content = sinktest.Large(5 << 20)
	large.Calls[0].Result = sinktest.Large(3 << 20)
	episodes = append(episodes, large)

	dir := runDir(t, episodes)
	writeDataset(t, dir)
	var wantRows, wantCalls []object
	for _, ep := range episodes {
		wantRows = append(wantRows, wantTrajectory(ep))
		for i, call := range ep.Calls {
			wantCalls = append(wantCalls, wantCall(ep, i, call))
		}
	}
	if diff := cmp.Diff(plain(t, wantRows), arrowRows(t, dir, "trajectories")); diff != "" {
		t.Errorf("trajectories (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plain(t, wantCalls), arrowRows(t, dir, "tool_calls")); diff != "" {
		t.Errorf("tool_calls (-want +got):\n%s", diff)
	}
}

func wantTrajectory(ep *episode.Episode) object {
	task := &ep.Task
	row := object{
		"schema_version": episode.SchemaVersion, "episode_id": ep.ID, "run": ep.Run, "row": ep.Row, "task_id": ep.Key.Task, "sample": ep.Key.Sample,
		"seed": ep.Key.Seed, "attempt": ep.Attempt, "earlier_attempts": list(ep.Earlier, wantEarlier), "resumed_turns": list(ep.Resumed, same),
		"parent_id": nil, "parent_call": nil, "fork_turn": nil, "depth": nil, "role": nil, "root_reward": nil,
		"task": object{
			"system": text(task.System), "prompt": list(task.Prompt, wantMessage), "setup": text(task.Setup),
			"image": text(task.Image), "cwd": text(task.Cwd), "network": text(task.Network),
			"env": list(slices.Sorted(maps.Keys(task.Env)), func(key string) any {
				return object{"key": key, "value": task.Env[key]}
			}),
			"toolsets": list(task.Toolsets, same), "distribution": text(task.Distribution), "verify": nil,
			"limit_turns": positive(task.Limits.Turns), "limit_tokens": positive(task.Limits.Tokens),
			"limit_time_us": positive(int(task.Limits.Time / time.Microsecond)),
			"memory":        jsonOf(task.Memory), "user": jsonOf(task.User),
			"tags": list(task.Tags, same), "difficulty": text(task.Difficulty), "metadata": text(string(task.Metadata)),
		},
		"distribution": text(ep.Distribution), "toolsets": list(ep.Toolsets, same), "log_p": ep.LogP,
		"tools":    list(ep.Tools, func(tool json.RawMessage) any { return string(tool) }),
		"messages": list(ep.Messages, wantMessage),
		"turns": list(ep.Turns, func(turn episode.Turn) any {
			return object{
				"index": turn.Index, "message": turn.Message, "model": text(turn.Model), "request_id": text(turn.RequestID),
				"finish_reason": turn.FinishReason, "usage": wantUsage(turn.Usage), "started": instant(turn.Started),
				"elapsed_us": turn.Elapsed / time.Microsecond, "retries": list(turn.Retries, wantFault),
				"waited_us": turn.Waited / time.Microsecond, "fallback": text(turn.Fallback), "repairs": list(turn.Repairs, same), "raw": text(turn.Raw), "endpoint": text(turn.Endpoint), "provider": text(turn.Provider),
				"system_fingerprint": text(turn.SystemFingerprint), "weight_version": text(turn.WeightVersion),
				"service_tier": text(turn.ServiceTier), "native_finish_reason": text(turn.NativeFinishReason), "cost": turn.Cost,
				"prompt_end": nil, "completion_end": nil, "shared_ids": nil, "prompt_ids": []any{}, "completion_ids": []any{}, "logprobs": []any{},
			}
		}),
		"outcome": ep.Outcome, "stop": ep.Stop, "fault_outcome": nil, "fault_class": nil, "fault_message": nil,
		"answer": ep.Answer, "reward": ep.Reward,
		"rewards": list(ep.Rewards, func(r episode.Reward) any {
			return object{"name": r.Name, "value": r.Value, "weight": r.Weight, "detail": text(r.Detail)}
		}),
		"usage": wantUsage(ep.Usage), "cost_usd": ep.CostUSD, "model": text(ep.Model),
		"sandbox": wantSandbox(&ep.Sandbox), "web": text(ep.Web),
		"started": instant(ep.Started), "elapsed_us": ep.Elapsed / time.Microsecond,
		"phases": object{
			"open_us": ep.Phases.Open / time.Microsecond, "setup_us": ep.Phases.Setup / time.Microsecond,
			"agent_us": ep.Phases.Agent / time.Microsecond, "model_us": ep.Phases.Model / time.Microsecond,
			"tools_us": ep.Phases.Tools / time.Microsecond, "verify_us": ep.Phases.Verify / time.Microsecond,
			"close_us": ep.Phases.Close / time.Microsecond,
		},
	}
	wantTokens(ep, row)
	row["mcp_servers"] = list(ep.MCP, func(s episode.MCPServer) any {
		return object{
			"declared": s.Declared, "name": s.Name, "version": s.Version, "protocol": s.Protocol, "sha256": s.SHA256, "shared": s.Shared,
			"connect_us": s.Connect / time.Microsecond, "calls": s.Calls, "reconnects": s.Reconnects,
		}
	})
	row["compactions"] = list(ep.Compactions, func(c episode.Compaction) any {
		want := object{
			"turn": c.Turn, "strategy": c.Strategy, "refused": c.Refused, "before_tokens": c.Before, "after_tokens": c.After, "counted_tokens": c.Counted,
			"replaced":     list(c.Replaced, func(r episode.Replacement) any { return object{"message": r.Message, "content": r.Content} }),
			"from_message": nil, "to_message": nil, "summary": text(c.Summary), "model": text(c.Model), "usage": wantUsage(episode.Usage{}), "failed": text(c.Failed),
		}
		if c.To > 0 {
			want["from_message"], want["to_message"], want["usage"] = c.From, c.To, wantUsage(*c.Usage)
		}
		return want
	})
	row["memory"], row["recalled"], row["ephemeral"] = jsonOf(ep.Memory), text(ep.Recalled), text(ep.Ephemeral)
	row["sampling_model"], row["sampling_reasoning_effort"] = text(ep.Sampling.Model), text(ep.Sampling.ReasoningEffort)
	row["sampling_temperature"], row["sampling_top_p"] = ep.Sampling.Temperature, ep.Sampling.TopP
	row["sampling_max_tokens"] = positive(ep.Sampling.MaxTokens)
	for _, name := range []string{
		"role", "of", "class", "variant", "p", "turn", "index", "nested", "ordinal", "replicate",
	} {
		row["twin_"+name] = nil
	}
	row["reactions"] = []any{}
	for _, name := range []string{"prefix", "prefix_tokens", "used_wrong", "used_true", "safe_success", "recoverable", "planted_level", "log_p_planted"} {
		row[name] = nil
	}
	if twin := ep.Twin; twin != nil {
		maps.Copy(row, object{
			"twin_role": twin.Role, "twin_of": twin.Of, "twin_class": twin.Class, "twin_variant": text(twin.Variant), "twin_p": twin.P,
			"twin_turn": twin.Turn, "twin_index": twin.Index, "twin_nested": twin.Nested, "twin_ordinal": twin.Ordinal, "twin_replicate": twin.Replicate,
			"prefix": twin.Prefix, "prefix_tokens": twin.PrefixTokens, "reactions": list(twin.Reactions, same),
			"used_wrong": twin.UsedWrong, "used_true": twin.UsedTrue, "safe_success": twin.SafeSuccess, "recoverable": twin.Recoverable,
		})
	}
	if planted := ep.Planted; planted != nil {
		row["planted_level"], row["log_p_planted"] = planted.Level, planted.LogP
	}
	row["proof"], row["proof_gold"], row["proof_noop"], row["proof_attacks"] = nil, nil, nil, []any{}
	if p := ep.Proof; p != nil {
		row["proof"], row["proof_gold"], row["proof_noop"] = jsonOf(p), p.Gold, p.Noop
	}
	row["user_questions"], row["user_model"], row["user_usage"] = nil, nil, wantUsage(episode.Usage{})
	row["approver_usage"] = wantUsage(episode.Usage{})
	for _, call := range ep.Calls {
		if call.Verdict != nil && call.Verdict.Usage != nil {
			row["approver_usage"] = wantUsage(*call.Verdict.Usage)
		}
	}
	if u := ep.User; u != nil {
		row["user_questions"], row["user_model"], row["user_usage"] = u.Questions, text(u.Model), wantUsage(u.Usage)
	}
	row["skills"], row["skills_log_p"], row["skills_written"], row["skill_events"] = nil, nil, nil, []any{}
	if s := ep.Skills; s != nil {
		row["skills"], row["skills_log_p"], row["skills_written"] = s.Mode, s.LogP, jsonOf(&s.Written)
		row["skill_events"] = list(s.Events, func(e episode.SkillEvent) any {
			return object{
				"turn": e.Turn, "kind": e.Kind, "skill": e.Skill, "file": text(e.File), "digest": text(e.Digest), "bytes": e.Bytes,
				"rank": positive(e.Rank),
			}
		})
	}
	if len(task.Verify) > 0 {
		checks, _ := json.Marshal(task.Verify)
		row["task"].(object)["verify"] = string(checks)
	}
	if f := ep.Fault; f != nil {
		row["fault_outcome"], row["fault_class"], row["fault_message"] = f.Outcome, f.Class, f.Message
	}
	return row
}

// wantTokens builds the token columns from whole exchanges, not from what the row keeps of them.
func wantTokens(ep *episode.Episode, row object) {
	row["drift"], row["drift_turn"], row["drift_position"] = "unknown", nil, nil
	for _, name := range []string{"drift_expected", "drift_got", "token_ids", "loss_mask", "logprobs"} {
		row[name] = []any{}
	}
	d := ep.Drift
	if d == nil {
		return
	}
	turns := row["turns"].([]any)
	row["drift"] = d.Verdict
	if d.Verdict != episode.DriftNone {
		row["drift_turn"] = d.Turn
		for i, turn := range turns {
			turn, kept := turn.(object), ep.Turns[i].Tokens
			if len(ep.TokensOf(i).Prompt) > 0 {
				turn["shared_ids"] = kept.Shared
			}
			turn["prompt_ids"], turn["completion_ids"], turn["logprobs"] = list(kept.Prompt, same), list(kept.Completion, same), list(kept.Logprobs, same)
		}
		if d.Verdict != episode.DriftUnknown {
			row["drift_position"], row["drift_expected"], row["drift_got"] = d.Position, list(d.Expected, same), list(d.Got, same)
		}
		return
	}
	last := ep.TokensOf(len(ep.Turns) - 1)
	all := slices.Concat(last.Prompt, last.Completion)
	mask, logprobs := make([]any, len(all)), make([]any, len(all))
	for at := range mask {
		mask[at] = 0
	}
	for i, turn := range turns {
		turn, t := turn.(object), ep.TokensOf(i)
		turn["prompt_end"], turn["completion_end"] = len(t.Prompt), len(t.Prompt)+len(t.Completion)
		for n := range t.Completion {
			mask[len(t.Prompt)+n] = 1
			if t.Logprobs != nil {
				logprobs[len(t.Prompt)+n] = t.Logprobs[n]
			}
		}
	}
	row["token_ids"], row["loss_mask"], row["logprobs"] = list(all, same), mask, logprobs
}

// jsonOf is the JSON text of what is there.
func jsonOf[T any](value *T) any {
	if value == nil {
		return nil
	}
	var encoded strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	return strings.TrimSuffix(encoded.String(), "\n")
}

func partsOf(parts []episode.Part) any {
	if len(parts) == 0 {
		return nil
	}
	return jsonOf(&parts)
}

func wantSandbox(s *episode.Sandbox) object {
	return object{
		"backend": text(s.Backend), "level": text(s.Level), "opened": s.Opened, "forked": s.Forked,
		"limits": list(slices.Sorted(maps.Keys(s.Limits)), func(key string) any {
			return object{"key": key, "value": s.Limits[key]}
		}),
		"connections": list(s.Connections, func(c episode.Connection) any {
			return object{
				"host": c.Host, "port": c.Port, "address": text(c.Address), "started": instant(c.Started), "sent": c.Sent,
				"received": c.Received, "refused": text(c.Refused), "failed": text(c.Failed),
			}
		}),
	}
}

func wantCall(ep *episode.Episode, ordinal int, call episode.ToolCall) object {
	var verdict episode.Verdict
	if call.Verdict != nil {
		verdict = *call.Verdict
	}
	var exitCode any
	if call.ExitCode != nil {
		exitCode = *call.ExitCode
	}
	planted := object{
		"planted_class": nil, "planted_variant": nil, "planted_effect": nil, "planted_p": nil, "planted_target": nil, "planted_from": nil, "planted_retries": nil,
		"real_status": nil, "real_error_class": nil, "real_result": nil,
	}
	if p := call.Planted; p != nil {
		planted = object{
			"planted_class": p.Class, "planted_variant": text(p.Variant), "planted_effect": p.Effect, "planted_p": p.P, "planted_target": jsonOf(p.Target),
			"planted_from": p.From, "planted_retries": p.Retries, "real_status": text(string(p.RealStatus)), "real_error_class": text(p.RealErrorClass), "real_result": text(p.RealResult),
		}
	}
	row := object{
		"schema_version": episode.SchemaVersion, "episode_id": ep.ID, "run": ep.Run, "row": ep.Row, "task_id": ep.Key.Task,
		"sample": ep.Key.Sample, "attempt": ep.Attempt, "ordinal": ordinal, "args_sha256": text(call.Digest()), "turn": call.Turn, "index": call.Index, "call_id": call.ID,
		"parent_id": text(call.Parent), "tool": call.Name, "toolset": text(call.Toolset),
		"raw_arguments": call.RawArguments, "arguments": text(string(call.Arguments)), "coerced": list(call.Coerced, same),
		"repaired": call.Repaired, "status": call.Status, "error_class": text(call.ErrorClass), "result": call.Result,
		"truncated": call.Truncated, "result_bytes": call.ResultBytes, "started": instant(call.Started),
		"elapsed_us": call.Elapsed / time.Microsecond, "sandbox_us": call.SandboxTime / time.Microsecond,
		"outcome":   ep.Outcome,
		"rewritten": list(call.Rewritten, same), "via": text(call.Via), "verdict": text(verdict.Verdict),
		"verdict_rule": text(verdict.Rule), "verdict_reason": text(verdict.Reason), "verdict_decision": text(verdict.Decision),
		"stored": text(call.Stored), "untrusted": text(call.Untrusted), "source": text(string(call.Source)), "images": partsOf(call.Images), "runner": call.Runner, "masked": list(call.Masked, same), "same_as": text(call.SameAs), "notice": text(call.Notice), "exit_code": exitCode,
	}
	maps.Copy(row, planted)
	return row
}

func wantMessage(m episode.Message) any {
	return object{
		"role": m.Role, "content": m.Content, "reasoning": text(m.Reasoning), "tool_call_id": text(m.ToolCallID),
		"name": text(m.Name), "parts": partsOf(m.Parts), "harness": m.Harness, "reasoning_details": text(string(m.ReasoningDetails)),
		"tool_calls": list(m.Calls, func(call episode.Call) any {
			return object{"id": call.ID, "name": call.Name, "arguments": call.Arguments, "cut": call.Cut, "sent": text(call.Sent)}
		}),
	}
}

func wantUsage(u episode.Usage) any {
	if !u.Reported {
		return object{"prompt_tokens": nil, "completion_tokens": nil, "reasoning_tokens": nil, "cached_tokens": nil}
	}
	return object{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion,
		"reasoning_tokens": u.Reasoning, "cached_tokens": u.Cached,
	}
}

func wantFault(f episode.Fault) any {
	return object{"outcome": f.Outcome, "class": f.Class, "message": f.Message, "pause_us": positive(int(f.Pause / time.Microsecond))}
}

func wantEarlier(a episode.Attempt) any {
	row := object{
		"attempt": a.Attempt, "outcome": a.Outcome, "class": nil, "message": nil, "started": instant(a.Started), "elapsed_us": a.Elapsed / time.Microsecond,
		"turns": a.Turns, "usage": wantUsage(a.Usage), "cost_usd": a.CostUSD, "at_once": a.AtOnce, "differed": jsonOf(a.Differed),
	}
	if a.Fault != nil {
		row["class"], row["message"] = a.Fault.Class, a.Fault.Message
	}
	return row
}

func same[T any](v T) any { return v }

// list is never null: nil and empty are one value.
func list[T any](items []T, convert func(T) any) []any {
	converted := []any{}
	for _, item := range items {
		converted = append(converted, convert(item))
	}
	return converted
}

// text is null when it is empty.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func positive(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// instant is a UTC time as the Arrow library prints it.
func instant(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format("2006-01-02 15:04:05.000000")
}
