package run

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/datasets"
)

// Dataset is the dataset, and which of its tasks are played.
type Dataset struct {
	Path        Paths              `yaml:"path" flag:"dataset" experiment:"always" help:"dataset: bundled, a file (.jsonl, .json, .csv, .tsv, .parquet, .arrow or .yaml; text also packed as .gz, .zst or .bz2), a pattern such as 'data/*.jsonl.gz', or a directory; of several, in their order"`
	Map         string             `yaml:"map" experiment:"always" help:"mapping file that builds the task fields from foreign rows, or the name of one that comes along: humaneval, gsm8k"`
	Shape       string             `yaml:"shape,omitempty" experiment:"given" help:"shape of the dataset's rows: swebench, verl, skyrl, hermes (ShareGPT conversations, too), chat (messages with the assistant's turns) or task (our own fields); without it, their columns show all but chat"`
	Subset      string             `yaml:"subset,omitempty" experiment:"given" help:"subset of a dataset folder (a config of its README.md, or a directory of it), where it has several"`
	Split       string             `yaml:"split,omitempty" experiment:"given" help:"split of a dataset folder, such as train or test, where it has several"`
	MaxTasks    int                `yaml:"max_tasks" experiment:"given" help:"play N tasks at most: the first of those that the other choices leave"`
	SkipBadRows bool               `yaml:"skip_bad_rows" experiment:"always" help:"report broken rows and play the rest"`
	Shuffle     bool               `yaml:"shuffle" experiment:"always" help:"play the tasks in an order drawn from the seed; what does not fit into 64 MiB lies in the run directory meanwhile"`
	Where       string             `yaml:"where,omitempty" experiment:"given" help:"play the tasks for which a condition holds, such as 'difficulty == \"hard\" and \"math\" in tags and level > 3'; it sees id, row, prompt, system, tags, difficulty, toolsets, files and whatever else a row has; a name that no row has is refused, metadata?.NAME asks for it all the same"`
	Parts       map[string]float64 `yaml:"parts,omitempty" experiment:"given" help:"divide the tasks by a hash of their ids, such as --parts train=0.9 --parts test=0.1: a task stays in its part when others are added, and with any seed"`
	UsePart     string             `yaml:"use_part,omitempty" experiment:"given" help:"the one of the parts that is played"`
	Stratify    string             `yaml:"stratify,omitempty" experiment:"given" help:"play a sample in which each value of a field, such as difficulty, has the share that it has in the dataset; --max-tasks says how large, or --per-stratum"`
	PerStratum  int                `yaml:"per_stratum,omitempty" experiment:"given" help:"with stratify: so many tasks of each value"`
	Slice       string             `yaml:"slice,omitempty" experiment:"given" help:"play the tasks at some positions, START:END or START:END:STEP, from 0 and without END, such as 100:200 or ::10"`
}

// Paths is one path or several: in a run file a text or a list.
type Paths []string

func (p *Paths) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*p = nil
		if node.Value != "" {
			*p = Paths{node.Value}
		}
		return nil
	}
	return node.Decode((*[]string)(p))
}

func (p Paths) MarshalYAML() (any, error) {
	if len(p) <= 1 {
		return p.String(), nil
	}
	return []string(p), nil
}

func (p Paths) String() string { return strings.Join(p, ", ") }

// names are the paths without their directories, which differ between machines.
func (p Paths) names() string {
	short := make([]string, len(p))
	for i, path := range p {
		if short[i] = path; filepath.IsAbs(path) {
			short[i] = filepath.Base(path)
		}
	}
	return strings.Join(short, ", ")
}

// Choice says which tasks of the dataset are played.
func (f *File) Choice() datasets.Choice {
	return datasets.Choice{
		Where: f.Dataset.Where, Parts: f.Dataset.Parts, Part: f.Dataset.UsePart, Shuffle: f.Dataset.Shuffle, Stratify: f.Dataset.Stratify, PerStratum: f.Dataset.PerStratum, Slice: f.Dataset.Slice,
		Seed: f.Seed, Scratch: f.Scratch,
	}
}

// chosen records how many tasks each step of the choice left.
func (t *tasks) chosen(steps []datasets.Step) {
	if !t.surveyed {
		t.steps = steps
	}
}

// tellChosen logs, once, what was left out.
func (t *tasks) tellChosen() {
	t.Logger.Info("tasks chosen", "steps", t.steps)
	if text := LeftOut(t.steps); text != "" {
		fmt.Fprintln(t.warnings, text)
	}
}

// LeftOut describes the steps that left out tasks.
func LeftOut(steps []datasets.Step) string {
	if len(steps) == 0 || steps[len(steps)-1].Left == steps[0].Left {
		return ""
	}
	text := fmt.Sprintf("of %d tasks that were read", steps[0].Left)
	for i, step := range steps[1:] {
		if step.Left < steps[i].Left {
			text += fmt.Sprintf(", %s left %d", step.Name, step.Left)
		}
	}
	return text
}
