package toolbench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/run"
	"trajgen/registry"
)

// drawn is a recorded call that a hash has chosen.
type drawn struct {
	episode string
	call    int // in Calls
}

// fromRun takes so many recorded calls of each tool, with equal chance, each behind the earlier calls of its episode. A call is
// expected to end as it did. Calls with a planted fault, or behind one, are left out.
func fromRun(ctx context.Context, dir string, toolset *registry.Toolset, most int) (cases []Case, err error) {
	file, err := run.Resumed(dir)
	if err != nil {
		return nil, err
	}
	_, reader, err := run.OpenFinished(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	byTool := map[string]map[string]drawn{} // by their hashes
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		if ep.Twin != nil { // whose first calls are those of its clean episode
			continue
		}
		for _, i := range repeatable(ep.Calls, toolset.Has) {
			call := &ep.Calls[i]
			if byTool[call.Name] == nil {
				byTool[call.Name] = map[string]drawn{}
			}
			hash, chosen := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", ep.ID, call.Turn, call.Index)), byTool[call.Name]
			chosen[string(hash[:])] = drawn{ep.ID, i}
			if len(chosen) > most { // those with the least hashes stay
				delete(chosen, slices.Max(slices.Collect(maps.Keys(chosen))))
			}
		}
	}
	wanted := map[string]*episode.Task{}
	for _, tool := range slices.Sorted(maps.Keys(byTool)) {
		for _, hash := range slices.Sorted(maps.Keys(byTool[tool])) {
			chosen := byTool[tool][hash]
			ep, err := reader.Episode(chosen.episode)
			if err != nil {
				return nil, err
			}
			cases = append(cases, recorded(ep, chosen.call, toolset))
			wanted[ep.Task.ID] = nil
		}
	}
	return cases, furnish(ctx, file.Dataset, cases, wanted)
}

// repeatable are the calls of an episode that can be made again: those that the model made itself, of tools that there are, before any
// planted fault.
func repeatable(calls []episode.ToolCall, has func(tool string) bool) (which []int) {
	for i := range calls {
		call := &calls[i]
		if call.Planted != nil {
			break
		}
		if call.Parent == "" && call.Via == "" && has(call.Name) {
			which = append(which, i)
		}
	}
	return which
}

func recorded(ep *episode.Episode, n int, toolset *registry.Toolset) Case {
	call := &ep.Calls[n]
	c := Case{
		ID: fmt.Sprintf("%s turn %d call %d", ep.ID, call.Turn, call.Index), Tool: call.Name,
		Call: asked(call), Want: Want{Status: call.Status, Class: call.ErrorClass},
	}
	task := ep.Task
	c.Task = &task
	if !toolset.NeedsSandbox(call.Name) {
		return c
	}
	for i := range ep.Calls[:n] {
		if ep.Calls[i].Parent == "" {
			c.Before = append(c.Before, asked(&ep.Calls[i]))
		}
	}
	return c
}

// asked is the call as the model made it.
func asked(call *episode.ToolCall) registry.Request {
	return registry.Request{ID: call.ID, Turn: call.Turn, Index: call.Index, Name: call.Name, Arguments: call.RawArguments}
}

// furnish finds the tasks in the dataset, as the journal has them without their files.
func furnish(ctx context.Context, settings datasets.Settings, cases []Case, wanted map[string]*episode.Task) error {
	source, _, err := settings.Open(datasets.Options{})
	if err != nil {
		return err
	}
	found := 0
	for task, err := range source.Tasks(ctx) {
		if err != nil {
			return err
		}
		if known, ok := wanted[task.ID]; ok && known == nil {
			wanted[task.ID], found = task, found+1
		}
		if found == len(wanted) {
			break
		}
	}
	for i := range cases {
		id := cases[i].Task.ID
		if cases[i].Task = wanted[id]; cases[i].Task == nil {
			return fmt.Errorf("the dataset of the run has no task %q any more (run this command where the run was started)", id)
		}
	}
	return nil
}
