package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trajgen/distributions"
	"trajgen/pipeline"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/where/nearest"
	"trajgen/registry"
)

// drawDigest identifies what a distribution draws; its description may change.
func drawDigest(d *distributions.Distribution) string {
	content, err := json.Marshal(d.Toolsets)
	if err != nil {
		return err.Error()
	}
	return digest(d.Name, content)
}

// Whose draws differ, in the order of the help.
const (
	DrawTask   = "task"
	DrawSample = "sample"
)

// decideDraw fills in what the run file does not say: a run that is resumed goes on as it began in its directory, and one of an
// older version drew for each sample.
func (t *Tools) decideDraw(resumed bool, dir string) error {
	if t.Draw != "" || !resumed {
		t.Draw = cmp.Or(t.Draw, DrawTask)
		return nil
	}
	earlier, err := ReadManifest(dir)
	t.Draw = cmp.Or(earlier.RunFile.Tools.Draw, DrawSample)
	return err
}

// draws are what episodes' toolsets are drawn from.
type draws struct {
	*opened
	byName map[string]*drawn // distributions, by name or path
	fixed  map[string]error  // what is wrong with the toolsets of tasks
}

// drawn is a distribution and its draws without tools.
type drawn struct {
	*distributions.Distribution
	toolless []string // its toolsets without any tool in this version; nil when every draw has another toolset
	bare     int      // episodes that drew only these
}

// distribution resolves a name or path once, and checks that its toolsets exist.
func (t *draws) distribution(name string) (*drawn, error) {
	if d, ok := t.byName[name]; ok {
		return d, nil
	}
	d, err := ResolveDistribution(name)
	if err != nil {
		return nil, err
	}
	known := func(toolset string) error {
		_, err := t.Registry.Resolve([]string{toolset}, nil)
		return err
	}
	if err := d.Validate(known); err != nil {
		return nil, fmt.Errorf("distribution %s: %w", d.Name, err)
	}
	t.byName[name] = &drawn{Distribution: &d}
	return t.byName[name], t.warnOfToolless(t.byName[name])
}

// warnOfToolless warns of toolsets in a distribution that have no tool in this version: the draw is recorded, but the model is
// shown no tools for them.
func (t *draws) warnOfToolless(d *drawn) error {
	var empty []string
	always := false // every draw has a toolset with tools
	for _, share := range d.Toolsets {
		toolset, err := t.Registry.Select([]string{share.Toolset}, t.File.Tools.DisabledToolsets)
		if err != nil {
			return err
		}
		t.mayBrowse(toolset)
		if len(toolset.Names()) == 0 {
			empty = append(empty, share.Toolset)
		} else {
			always = always || share.Percent == 100
		}
	}
	if len(empty) == len(d.Toolsets) {
		return fmt.Errorf("distribution %s: none of its toolsets has a tool that is available here: %s; %s", d.Name, strings.Join(empty, ", "), withTools)
	}
	if len(empty) > 0 {
		fmt.Fprintf(t.warnings, "distribution %s draws toolsets without an available tool: %s\n", d.Name, strings.Join(empty, ", "))
	}
	if !always {
		d.toolless = empty
	}
	return nil
}

// ofTasks are the digests of the distributions that tasks name and the run does not.
func (t *draws) ofTasks() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if name != t.File.Tools.Distribution {
			all = append(all, drawDigest(t.byName[name].Distribution))
		}
	}
	return strings.Join(all, " ")
}

// withTools is advice about toolsets without tools.
const withTools = "choose others with --toolsets, or a distribution of your own that leaves these out (trajgen toolsets list says what has tools, trajgen distributions --help how to write one)"

// countBare counts the episodes of a task that draw only toolsets without tools. A retry would draw the same.
func (t *draws) countBare(task *episode.Task) {
	d := t.byName[cmp.Or(task.Distribution, t.File.Tools.Distribution)]
	if len(task.Toolsets) > 0 || d == nil || len(d.toolless) == 0 {
		return
	}
	from := pipeline.Toolsets{Distribution: d.Distribution, ByTask: t.File.Tools.Draw == DrawTask}
	for sample := range t.File.Samples {
		toolsets := from.Sample(episode.Key{Seed: t.File.Seed, Task: task.ID, Sample: sample}).Toolsets
		if !slices.ContainsFunc(toolsets, func(name string) bool { return !slices.Contains(d.toolless, name) }) {
			d.bare++
		}
	}
}

// bare refuses distributions that leave some episodes without a tool. An earlier part of the run may have played them.
func (t *draws) bare() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		d := t.byName[name]
		if d.bare == 0 {
			continue
		}
		err := fmt.Errorf("distribution %s: %d episodes would draw only toolsets without an available tool (%s); %s", d.Name, d.bare, strings.Join(d.toolless, ", "), withTools)
		if t.File.resumed {
			fmt.Fprintln(t.warnings, err)
			continue
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// hasTools says why a task's own toolsets leave its episodes without a tool.
func (t *draws) hasTools(toolsets []string) error {
	name := strings.Join(toolsets, "\n")
	if err, known := t.fixed[name]; known {
		return err
	}
	toolset, err := t.Registry.Select(toolsets, t.File.Tools.DisabledToolsets)
	if err == nil {
		t.mayBrowse(toolset)
	}
	if err == nil && len(toolset.Names()) == 0 && registry.Promise(toolsets) && !t.File.resumed {
		err = fmt.Errorf("its toolsets %v have no tool that is available here (%s); %s", toolsets, cmp.Or(reasons(toolset.Missing()), "there is none in them"), withTools)
	}
	t.fixed[name] = err
	return err
}

// Draw returns the toolsets of a task's episodes: the task's own, or else the run's.
func (t *draws) Draw(task *episode.Task) (pipeline.Toolsets, error) {
	if len(task.Toolsets) > 0 {
		return pipeline.Toolsets{Fixed: slices.Sorted(slices.Values(task.Toolsets))}, nil
	}
	if name := cmp.Or(task.Distribution, t.File.Tools.Distribution); name != "" {
		return pipeline.Toolsets{Distribution: t.byName[name].Distribution, ByTask: t.File.Tools.Draw == DrawTask}, nil
	}
	return pipeline.Toolsets{Fixed: slices.Sorted(slices.Values(t.File.Tools.fixed()))}, nil
}

// ResolveDistribution finds a distribution by its name or path.
func ResolveDistribution(nameOrPath string) (distributions.Distribution, error) {
	d, err := distributions.Resolve(nameOrPath)
	if err != nil {
		err = fmt.Errorf("%w%s", err, nearest.DidYouMean(nameOrPath, distributions.Names()))
	}
	return d, err
}
