package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/registry"
	"trajgen/tools"
)

// experiment is what decides which episodes there are and how they go. Workers, samples, endpoints, retries and
// outputs are not of it: they may be changed on resume.
func (f *File) experiment(parts experimentParts) map[string]string {
	show := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(data)
	}
	all := map[string]string{
		"dataset": parts.Dataset, "map": parts.Mapping, "skip_bad_rows": show(f.SkipBadRows), "shuffle": show(f.Shuffle), "seed": show(f.Seed),
		"distribution": parts.Distribution, "toolsets": sorted(f.Toolsets), "disabled_toolsets": sorted(f.DisabledToolsets),
		"custom_toolsets": unlessNone(len(f.CustomToolsets), show(f.CustomToolsets)), "model": f.Model, "temperature": show(f.Temperature), "top_p": show(f.TopP),
		"max_tokens": show(f.MaxTokens), "extra_body": unlessNone(len(f.ExtraBody), show(f.ExtraBody)), "policy": f.policyText(), "system_prompt": parts.System, "task_distributions": parts.Tasks, "tools": parts.Tools, "replay": parts.Replay,
		"max_turns": show(f.MaxTurns), "episode_tokens": show(f.EpisodeTokens), "episode_timeout": f.EpisodeTimeout.String(),
		"sandbox": f.Sandbox, "image": f.Image, "network": f.Network, "memory": f.Memory.String(), "processes": show(f.Processes), "disk": f.Disk.String(),
	}
	if len(f.Allow) > 0 {
		all["allow"] = sorted(f.Allow)
	}
	// What is not given is left out, so that runs of older versions can be resumed.
	if mode := f.policyMode(); mode != tools.PolicyRecord && !f.scriptedCommands() {
		all["command_policy"] = strings.Join(append([]string{mode}, f.Approver...), " ") + f.ApproverModel
	}
	if parts.Plugins != "" {
		all["plugins"] = parts.Plugins
	}
	if f.ToolSearch != (registry.Bridge{}) {
		all["tool_search"] = show(f.ToolSearch)
	}
	if len(f.SchemaQuirks) > 0 {
		all["schema_quirks"] = sorted(f.SchemaQuirks)
	}
	if f.Guardrails == rollout.GuardTell || f.Guardrails == rollout.GuardStop {
		all["guardrails"] = f.Guardrails
	}
	if f.TurnResultLimit > 0 || len(f.ResultLimits) > 0 {
		all["result_limits"] = show(f.ResultLimits) + show(f.TurnResultLimit)
	}
	if f.ToolFormat != "" && f.ToolFormat != model.ToolFormatAuto {
		all["tool_format"] = f.ToolFormat
	}
	if server := f.tokenServer(); server != "" {
		all["token_ids"] = server
	}
	if len(f.Fallbacks) > 0 {
		all["fallbacks"] = f.fallbackText()
	}
	if f.UserModel != "" {
		all["user_model"] = f.UserModel
	}
	f.asking(all, parts, show)
	f.choosing(all)
	if f.SearchSameTask {
		all["session_search_same_task"] = "true"
	}
	if f.CPUs > 0 {
		all["cpus"] = show(f.CPUs)
	}
	for name, value := range map[string]any{
		"episode_usd": f.EpisodeUSD, "context_window": f.ContextWindow, "compaction": f.Compaction, "compact_at": f.CompactAt,
		"compact_to": f.CompactTo, "summary_model": f.SummaryModel,
	} {
		if !reflect.ValueOf(value).IsZero() {
			all[name] = show(value)
		}
	}
	if f.Shape != "" {
		all["shape"] = f.Shape
	}
	if f.Inodes > 0 {
		all["inodes"] = show(f.Inodes)
	}
	return all
}

// asking adds how the model is asked. Where the models of a sweep are is not of the experiment, as it is not of others.
func (f *File) asking(all map[string]string, parts experimentParts, show func(any) string) {
	given := func(name string, is bool, text string) {
		if is {
			all[name] = text
		}
	}
	sweep := f.Varied()
	given("sweep", sweep.Combinations() > 1 || len(sweep.Models) > 0, show(sweep))
	given("reasoning_effort", f.ReasoningEffort != "", f.ReasoningEffort)
	given("send_reasoning", f.SendReasoning != "" && f.SendReasoning != model.ReasoningAuto, f.SendReasoning)
	given("send_seed", f.noSeed(), "false")
	given("tool_choice", f.ToolChoice != "", f.ToolChoice)
	given("parallel_tool_calls", f.ParallelToolCalls != nil, show(f.ParallelToolCalls))
	given("provider", len(f.Provider) > 0, show(f.Provider))
	given("ephemeral_system_prompt", parts.Ephemeral != "", parts.Ephemeral)
	given("prefill", parts.Prefill != "", parts.Prefill)
}

func sorted(names []string) string { return strings.Join(slices.Sorted(slices.Values(names)), ",") }

// unlessNone keeps an empty map apart from none in no experiment.
func unlessNone(n int, text string) string {
	if n == 0 {
		return ""
	}
	return text
}

// experimentParts are contents rather than names: a file of the same name may have changed.
type experimentParts struct {
	Dataset, Mapping, Distribution, System string
	Tasks                                  string // the distributions that tasks name
	Tools                                  string // what a model can be shown
	Replay                                 string // the journal that is replayed
	Plugins                                string // what they are told, their files and their tools
	Ephemeral, Prefill                     string
}

func (f *File) policyText() string {
	switch f.Policy {
	case "noisy":
		return fmt.Sprintf("noisy skill=%v", f.Skill)
	case "replay":
		return "replay"
	}
	return f.Policy
}

// Fingerprint hashes an experiment.
func Fingerprint(experiment map[string]string) string {
	keys := make([]string, 0, len(experiment))
	for key := range experiment {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	hash := sha256.New()
	for _, key := range keys {
		fmt.Fprintf(hash, "%d:%s=%d:%s\n", len(key), key, len(experiment[key]), experiment[key])
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// Difference lists what differs between two experiments, a line each.
func Difference(was, now map[string]string) []string {
	var lines []string
	keys := map[string]bool{}
	for key := range was {
		keys[key] = true
	}
	for key := range now {
		keys[key] = true
	}
	for key := range keys {
		if was[key] != now[key] {
			lines = append(lines, fmt.Sprintf("%s: was %s, now %s", key, QuoteEmpty(was[key]), QuoteEmpty(now[key])))
		}
	}
	slices.Sort(lines)
	return lines
}

// QuoteEmpty shows a text in a difference.
func QuoteEmpty(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

// digest names a content in an experiment.
func digest(name string, content []byte) string {
	if name == "" && len(content) == 0 {
		return ""
	}
	sum := sha256.Sum256(content)
	return strings.TrimSpace(name + " sha256:" + hex.EncodeToString(sum[:])[:16])
}
