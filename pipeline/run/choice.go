package run

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/datasets"
)

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

// names leaves out where files lie on this machine.
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
		Where: f.Where, Parts: f.Parts, Part: f.UsePart, Shuffle: f.Shuffle, Stratify: f.Stratify, PerStratum: f.PerStratum, Slice: f.Slice,
		Seed: f.Seed, Scratch: f.Scratch,
	}
}

// choosing adds the choice to what decides which episodes there are. max_tasks is of it where another number gives other
// tasks rather than more of them.
func (f *File) choosing(all map[string]string) {
	for name, text := range map[string]string{"subset": f.Subset, "split": f.Split, "where": f.Where, "use_part": f.UsePart, "stratify": f.Stratify, "slice": f.Slice} {
		if text != "" {
			all[name] = text
		}
	}
	if len(f.Parts) > 0 {
		shares, err := json.Marshal(f.Parts) // by name
		if err != nil {
			shares = fmt.Append(nil, f.Parts)
		}
		all["parts"] = string(shares)
	}
	if f.PerStratum > 0 {
		all["per_stratum"] = fmt.Sprint(f.PerStratum)
	}
	if f.Stratify != "" && f.MaxTasks > 0 {
		all["max_tasks"] = fmt.Sprint(f.MaxTasks)
	}
	if f.Shuffle && f.MaxTasks > 0 {
		all["shuffle"] = "true, before max_tasks" // in older versions the other way round
	}
}

// chosen keeps what the steps of the choice have left.
func (e *Experiment) chosen(steps []datasets.Step) {
	if !e.surveyed {
		e.steps = steps
	}
}

// tellChosen says what was left out, once.
func (e *Experiment) tellChosen() {
	e.Logger.Info("tasks chosen", "steps", e.steps)
	if text := LeftOut(e.steps); text != "" {
		fmt.Fprintln(e.warnings, text)
	}
}

// LeftOut tells of steps that left out something.
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
