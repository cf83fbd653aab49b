package datasets

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Settings are a dataset, and which of its tasks are played, as in the run file.
type Settings struct {
	Path        Paths              `yaml:"path" flag:"dataset" experiment:"always" help:"dataset: bundled, bundled/research (questions about the bundled corpus), bundled/browser (tasks on web sites that come along), bundled/skills (tasks that the bundled skills are for), bundled/home (tasks in a smart home that comes along), a file (.jsonl, .json, .csv, .tsv, .parquet, .arrow or .yaml; text also packed as .gz, .zst or .bz2), a pattern such as 'data/*.jsonl.gz', or a directory; of several, in their order"`
	Map         string             `yaml:"map" experiment:"always" help:"mapping file that builds the task fields from foreign rows, or the name of one that comes along: humaneval, gsm8k"`
	Shape       string             `yaml:"shape,omitempty" experiment:"given" help:"shape of the dataset's rows: swebench, verl, skyrl, hermes (ShareGPT conversations, too), chat (messages with the assistant's turns) or task (our own fields); without it, their columns show all but chat"`
	Subset      string             `yaml:"subset,omitempty" experiment:"given" help:"subset of a dataset folder (a config of its README.md, or a directory of it), where it has several"`
	Split       string             `yaml:"split,omitempty" experiment:"given" help:"split of a dataset folder, such as train or test, where it has several"`
	MaxTasks    int                `yaml:"max_tasks" experiment:"given" help:"play N tasks at most: the first of those that the other choices leave"`
	SkipBadRows bool               `yaml:"skip_bad_rows" experiment:"always" help:"report broken rows and play the rest"`
	Shuffle     bool               `yaml:"shuffle" experiment:"always" help:"play the tasks in an order drawn from the seed; their rows lie in the run directory meanwhile"`
	Where       string             `yaml:"where,omitempty" experiment:"given" help:"play the tasks for which a condition holds, such as 'difficulty == \"hard\" and \"math\" in tags and level > 3'; it sees id, row, prompt, system, tags, difficulty, toolsets, files and whatever else a row has; a name that no row has is refused, metadata?.NAME asks for it all the same"`
	Parts       map[string]float64 `yaml:"parts,omitempty" experiment:"given" help:"divide the tasks by a hash of their ids, such as --parts train=0.9 --parts test=0.1: a task stays in its part when others are added, and with any seed"`
	UsePart     string             `yaml:"use_part,omitempty" experiment:"given" help:"the one of the parts that is played"`
	Stratify    string             `yaml:"stratify,omitempty" experiment:"given" help:"play a sample in which each value of a field, such as difficulty, has the share that it has in the dataset; --max-tasks says how large, or --per-stratum"`
	PerStratum  int                `yaml:"per_stratum,omitempty" experiment:"given" help:"with stratify: so many tasks of each value"`
	Slice       string             `yaml:"slice,omitempty" experiment:"given" help:"play the tasks at some positions, START:END or START:END:STEP, from 0 and without END, such as 100:200 or ::10"`
}

// Paths is one path or several: in a run file a text or a list.
type Paths []string

// UnmarshalYAML reads both forms.
func (p *Paths) UnmarshalYAML(node *yaml.Node) error { return (*texts)(p).UnmarshalYAML(node) }

// MarshalYAML writes a text where that is enough.
func (p Paths) MarshalYAML() (any, error) {
	if len(p) <= 1 {
		return p.String(), nil
	}
	return []string(p), nil
}

func (p Paths) String() string { return strings.Join(p, ", ") }

// Names are the paths without their directories, which differ between machines.
func (p Paths) Names() string {
	short := make([]string, len(p))
	for i, path := range p {
		if short[i] = path; filepath.IsAbs(path) {
			short[i] = filepath.Base(path)
		}
	}
	return strings.Join(short, ", ")
}

// Choice says which tasks are played, as the seed draws them. Rows that wait for their turn lie in the directory scratch.
func (s Settings) Choice(seed uint64, scratch string) Choice {
	return Choice{
		Where: s.Where, Parts: s.Parts, Part: s.UsePart, Shuffle: s.Shuffle, Stratify: s.Stratify, PerStratum: s.PerStratum, Slice: s.Slice,
		Seed: seed, Scratch: scratch,
	}
}

// Validate says what is wrong with the section.
func (s Settings) Validate() error { return s.Choice(0, "").Validate(s.MaxTasks) }

// Open opens the dataset, with options for what the section does not say, and returns the digest of its mapping, too.
func (s Settings) Open(options Options) (_ *Source, mapping string, err error) {
	options.MaxTasks, options.Shape, options.Subset, options.Split = s.MaxTasks, s.Shape, s.Subset, s.Split
	if s.Map != "" {
		if options.Map, err = LoadMapping(s.Map); err != nil {
			return nil, "", err
		}
		mapping = options.Map.Digest()
	}
	source, err := OpenAll(s.Path, options)
	return source, mapping, err
}
