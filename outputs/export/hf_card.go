package export

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/outputs/estimate"
	"trajgen/outputs/report"
	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// hfMade is what episodes say about how they were made: a few different values of each.
type hfMade struct{ models, sampling, tools, runs map[string]bool }

// hfMadeValues bounds what a card lists.
const hfMadeValues = 200

func newHFMade() hfMade {
	return hfMade{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

func (m *hfMade) add(ep *episode.Episode) {
	note := func(set map[string]bool, value string) {
		if value != "" && !set[value] && len(set) < hfMadeValues {
			set[strings.Clone(value)] = true // and not the whole text that it is a part of
		}
	}
	note(m.models, ep.Model)
	note(m.sampling, ep.Sampling.String())
	note(m.runs, ep.Run)
	for _, name := range functionNames(ep.Tools) {
		note(m.tools, name)
	}
}

// card is README.md: what the Hub reads, and what people do.
func (s *hfSink) card(trajectories, calls hfSize) []byte {
	license := cmp.Or(s.options.Set["license"], s.options.Run.License, "unknown")
	if license == "unknown" {
		s.notes = append(s.notes, "no license of the data is known, and the card says so (--set license=...)")
	}
	name := cmp.Or(s.options.Set["name"], s.options.Run.Name, "Agent trajectories")
	var out bytes.Buffer
	out.WriteString("---\n")
	head := yaml.NewEncoder(&out)
	head.SetIndent(2)
	if err := head.Encode(s.frontMatter(license, name, trajectories, calls)); err != nil { // of strings and numbers
		panic(err)
	}
	fmt.Fprintf(&out, "---\n\n# %s\n\n", inline(name))
	fmt.Fprintf(&out, "%s episodes of an agent that used tools in a sandbox, with the conversations as the model saw them, their rewards, and\n"+
		"the trace of each of %s tool calls. Made with trajgen.\n\n", report.Thousands(trajectories.rows), report.Thousands(calls.rows))
	fmt.Fprintf(&out, "```python\nfrom datasets import load_dataset\n\ntrajectories = load_dataset(\"...\", \"trajectories\", split=%q)\ncalls = load_dataset(\"...\", \"tool_calls\", split=%q)\n```\n\n", s.split, s.split)
	s.results(&out)
	s.provenance(&out)
	out.WriteString("## Columns\n\n`trajectories`, one row per episode:\n\n")
	meanings(&out, rows.TrajectoryMeanings)
	out.WriteString("\n`tool_calls`, one row per call, in the order of the episodes:\n\n")
	meanings(&out, rows.ToolCallMeanings)
	out.WriteString(`
## Limits

- An episode whose outcome is not success, failure or limit ended for a reason outside of the agent, and its reward is
  null: leave it out of training and of means.
- Messages with ` + "`harness`" + ` were written by neither the dataset nor the model.
- Results of tools that are marked ` + "`untrusted`" + ` hold what anybody could have written: treat them as data.
- The files that tasks began with, their reference solutions and the verifiers' files are not part of the rows.
- Samples of a task resemble each other: split by ` + "`task_id`" + `, not by row.
`)
	return out.Bytes()
}

func (s *hfSink) results(out *bytes.Buffer) {
	r := s.tally.Finish()
	out.WriteString("## Outcomes\n\n| outcome | episodes |\n|---|---|\n")
	for _, count := range r.Outcomes {
		if count.Count > 0 {
			fmt.Fprintf(out, "| %s | %s |\n", count.Outcome, report.Thousands(int64(count.Count)))
		}
	}
	fmt.Fprintf(out, "\n%s tasks, %s judged episodes. Mean reward: %s.\n\n", report.Thousands(int64(r.Episodes.Tasks)), report.Thousands(int64(r.Episodes.Judged)), estimateText(r.Reward))
}

func estimateText(e estimate.Estimate) string {
	switch {
	case e.Mean == nil:
		return "not defined, " + e.Note
	case e.Low == nil || e.High == nil:
		return fmt.Sprintf("%.3f (%s)", *e.Mean, cmp.Or(e.Note, "no interval"))
	}
	return fmt.Sprintf("%.3f (95 %% interval %.3f to %.3f, over tasks like these)", *e.Mean, *e.Low, *e.High)
}

func (s *hfSink) provenance(out *bytes.Buffer) {
	run := s.options.Run
	out.WriteString("## How it was made\n\n")
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(out, "- %s: %s\n", what, text)
		}
	}
	models := listed(s.made.models)
	if asked := run.Model; asked != "" && !s.made.models[asked] {
		models = strings.TrimPrefix(models+", asked for as "+code(asked), ", ")
	}
	line("model", models)
	line("sampling", cmp.Or(listed(s.made.sampling), "left to the server"))
	dataset := run.Dataset
	if run.Digest != "" {
		dataset = strings.TrimSpace(dataset + " " + strings.TrimPrefix(run.Digest, dataset))
	}
	if dataset != "" {
		line("dataset", code(dataset))
	}
	if run.Tasks > 0 {
		line("played", fmt.Sprintf("%d tasks, %d samples each, seed %d", run.Tasks, run.Samples, run.Seed))
	}
	line("tools", listed(s.made.tools))
	line("experiment", cmp.Or(listed(s.made.runs), run.Fingerprint))
	if run.Version != "" {
		line("trajgen", inline(run.Version))
	}
	out.WriteString("\n")
}

func meanings(out *bytes.Buffer, list []rows.Meaning) {
	out.WriteString("| column | meaning |\n|---|---|\n")
	for _, m := range list {
		fmt.Fprintf(out, "| `%s` | %s |\n", strings.Join(m.Columns, "`, `"), m.Text)
	}
}

func listed(set map[string]bool) string {
	var parts []string
	for _, value := range slices.Sorted(maps.Keys(set)) {
		parts = append(parts, code(value))
	}
	return strings.Join(parts, ", ")
}

// code and inline keep what a model or a server called itself from being more than text on one line.
func code(text string) string { return "`" + strings.ReplaceAll(inline(text), "`", "'") + "`" }

func inline(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("<", "‹", ">", "›", "|", "¦", "[", "(", "]", ")").Replace(text[:min(len(text), 200)])
}

// hfFeature is a column as the Hub describes it.
type hfFeature struct {
	Name     string      `yaml:"name,omitempty"`
	Dtype    string      `yaml:"dtype,omitempty"`
	Sequence string      `yaml:"sequence,omitempty"`
	List     []hfFeature `yaml:"list,omitempty"`
	Struct   []hfFeature `yaml:"struct,omitempty"`
}

type hfDataFiles struct {
	Split string `yaml:"split"`
	Path  string `yaml:"path"`
}

type hfConfig struct {
	Name      string        `yaml:"config_name"`
	DataFiles []hfDataFiles `yaml:"data_files"`
	Default   bool          `yaml:"default,omitempty"`
}

type hfSplitInfo struct {
	Name     string `yaml:"name"`
	Bytes    int64  `yaml:"num_bytes"`
	Examples int64  `yaml:"num_examples"`
}

type hfInfo struct {
	Name     string        `yaml:"config_name"`
	Features []hfFeature   `yaml:"features"`
	Splits   []hfSplitInfo `yaml:"splits"`
	Download int64         `yaml:"download_size"`
	Size     int64         `yaml:"dataset_size"`
}

type hfFrontMatter struct {
	License    string     `yaml:"license"`
	Name       string     `yaml:"pretty_name"`
	Categories []string   `yaml:"task_categories"`
	Tags       []string   `yaml:"tags"`
	Sizes      []string   `yaml:"size_categories"`
	Configs    []hfConfig `yaml:"configs"`
	Info       []hfInfo   `yaml:"dataset_info"`
}

func (s *hfSink) frontMatter(license, name string, trajectories, calls hfSize) hfFrontMatter {
	config := func(config, dir string, isDefault bool) hfConfig {
		return hfConfig{Name: config, DataFiles: []hfDataFiles{{s.split, dir + "/" + s.split + "-*.parquet"}}, Default: isDefault}
	}
	info := func(config string, row reflect.Type, size hfSize) hfInfo {
		return hfInfo{
			Name: config, Features: hfFeatures(row), Splits: []hfSplitInfo{{s.split, size.unpacked, size.rows}},
			Download: size.bytes, Size: size.unpacked,
		}
	}
	return hfFrontMatter{
		License: license, Name: inline(name), Categories: []string{"text-generation"},
		Tags: []string{"agent", "trajectories", "tool-use", "function-calling", "trajgen"}, Sizes: []string{sizeCategory(trajectories.rows)},
		Configs: []hfConfig{config("trajectories", hfTrajectories, true), config("tool_calls", hfCalls, false)},
		Info: []hfInfo{
			info("trajectories", reflect.TypeFor[rows.Trajectory](), trajectories), info("tool_calls", reflect.TypeFor[rows.ToolCall](), calls),
		},
	}
}

func hfFeatures(row reflect.Type) []hfFeature {
	features := make([]hfFeature, row.NumField())
	for i := range features {
		f := row.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		features[i] = hfFeature{Name: name}
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t.Kind() == reflect.Struct:
			features[i].Struct = hfFeatures(t)
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
			features[i].List = hfFeatures(t.Elem())
		case t.Kind() == reflect.Slice:
			features[i].Sequence = hfType(t.Elem())
		case strings.Contains(options, "timestamp"):
			features[i].Dtype = "timestamp[us, tz=UTC]"
		default:
			features[i].Dtype = hfType(t)
		}
	}
	return features
}

// hfType is the Hub's word for a type, which is Go's for most.
func hfType(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind().String()
}
