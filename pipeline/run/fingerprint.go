package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"trajgen/pipeline/model"
	"trajgen/pipeline/rollout"
	"trajgen/tools"
)

// experiment has the settings that decide which episodes there are and how they go, by name.
func (f *File) experiment(parts experimentParts) map[string]string {
	all := map[string]string{"task_distributions": parts.Tasks, "tools": parts.Tools}
	if parts.Browser != "" {
		all["browser_flags"] = parts.Browser
	}
	if parts.Scorers != "" {
		all["scorers"] = parts.Scorers
	}
	own := f.ownTexts(parts)
	for _, s := range f.Settings() {
		text, special := own[s.name()]
		if !special {
			text = s.text()
		}
		given := text != "" && (special || !s.Value.IsZero())
		if s.Decides == "always" || s.Decides == "given" && given {
			all[s.name()] = text
		}
	}
	return all
}

// ownTexts are the texts of settings whose text is not simply the value: contents of files, combinations with other settings,
// and "" for a value that means the default.
func (f *File) ownTexts(parts experimentParts) map[string]string {
	unless := func(nothing bool, text string) string {
		if nothing {
			return ""
		}
		return text
	}
	text := func(v any) string { return Setting{Value: reflect.ValueOf(v)}.text() }
	own := map[string]string{
		"dataset": parts.Dataset, "map": parts.Mapping, "distribution": parts.Distribution, "plugins": parts.Plugins, "mcp_servers": parts.MCP, "system_prompt": parts.System,
		"web": parts.Web, "twin": parts.Twin, "skills": parts.Skills, "ephemeral_system_prompt": parts.Ephemeral, "prefill": parts.Prefill, "replay": parts.Replay,
		"faults_clean": parts.Clean,
		"policy":       f.Scripted.Decides(), "moa_references": f.MOA.Decides(), "fallbacks": strings.Join(f.Model.FallbackNames(), ","), "token_ids": f.Model.TokenServer(),
		// Only where something is drawn; older versions drew for each sample and did not say so.
		"draw":           unless(f.Tools.Draw != DrawTask || f.Tools.Distribution == "" && parts.Tasks == "", DrawTask),
		"guardrails":     unless(f.Tools.Guardrails != rollout.GuardTell && f.Tools.Guardrails != rollout.GuardStop, f.Tools.Guardrails),
		"tool_format":    unless(f.Model.ToolFormat == model.ToolFormatAuto, f.Model.ToolFormat),
		"send_reasoning": unless(f.Model.SendReasoning == model.ReasoningAuto, f.Model.SendReasoning),
		"send_seed":      unless(f.Model.Seeded(), "false"),
		"result_limits":  unless(f.Tools.TurnResultLimit == 0 && len(f.Tools.ResultLimits) == 0, jsonText(f.Tools.ResultLimits)+text(f.Tools.TurnResultLimit)),
		"compaction":     unless(f.Context.Compaction == "", jsonText(f.Context.Compaction)),
		"summary_model":  unless(f.Context.SummaryModel == "", jsonText(f.Context.SummaryModel)),
		// A resume may have another number, except where the number decides which tasks are played.
		"max_tasks": unless(f.Dataset.Stratify == "" || f.Dataset.MaxTasks == 0, text(f.Dataset.MaxTasks)),
	}
	if f.Dataset.Shuffle && f.Dataset.MaxTasks > 0 {
		own["shuffle"] = "true, before max_tasks" // in older versions the other way round
	}
	mode := f.policyMode()
	own["command_policy"] = unless(mode == tools.PolicyRecord || f.scriptedCommands(),
		strings.Join(append([]string{mode}, f.Commands.Approver...), " ")+f.Commands.ApproverModel)
	sweep := f.Sweep.Varied()
	own["sweep"] = unless(sweep.Combinations() <= 1 && len(sweep.Models) == 0, jsonText(sweep))
	return own
}

// experimentParts are digests of contents, as a file of the same name may have changed.
type experimentParts struct {
	Dataset, Mapping, Distribution, System string
	Scorers                                string // the files of checks that a dataset names and does not have
	Tasks                                  string // the distributions that tasks name
	Tools                                  string // what a model can be shown
	Replay                                 string // the journal that is replayed
	Clean                                  string // the journal of the clean episodes of twins, if another run's
	Skills                                 string // their files
	Plugins                                string // their settings, files and tools
	MCP                                    string // how MCP servers are declared, and what they said of themselves
	Ephemeral, Prefill                     string
	Web                                    string // what web tools answer from
	Twin                                   string // how calls of tools are recorded or replayed
	Browser                                string // how browsers are started in sandboxes; "" where no episode can have one
}

// Fingerprint hashes an experiment.
func Fingerprint(experiment map[string]string) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(experiment)) {
		fmt.Fprintf(hash, "%d:%s=%d:%s\n", len(key), key, len(experiment[key]), experiment[key])
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// Difference lists what differs between two experiments, a line each.
func Difference(was, now map[string]string) []string {
	var lines []string
	keys := maps.Clone(was)
	maps.Copy(keys, now)
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

// digest identifies a content in an experiment.
func digest(name string, content []byte) string {
	if name == "" && len(content) == 0 {
		return ""
	}
	sum := sha256.Sum256(content)
	return strings.TrimSpace(name + " sha256:" + hex.EncodeToString(sum[:])[:16])
}
