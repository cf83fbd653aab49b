package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"trajgen/datasets"
	"trajgen/pipeline/episode"
	"trajgen/tools"
	"trajgen/tools/mcpserve"
)

// FindTask finds a task of a dataset by its id; nil where that is "".
func FindTask(ctx context.Context, id, dataset, mapping string) (*episode.Task, error) {
	if id == "" {
		return nil, nil
	}
	source, _, err := datasets.Settings{Path: datasets.Paths{dataset}, Map: mapping}.Open(datasets.Options{})
	if err != nil {
		return nil, err
	}
	for task, err := range source.Tasks(ctx) {
		if err != nil {
			return nil, err
		}
		if task.ID == id && len(task.Builds()) > 0 {
			return nil, fmt.Errorf("task %q has a Dockerfile, and sessions build no images: build it (trajgen image build) and name it in the task", id)
		}
		if task.ID == id {
			return task, nil
		}
	}
	return nil, fmt.Errorf("%s has no task %q (trajgen datasets show lists them)", dataset, id)
}

// Serve opens the desk of a session over MCP. A file of the folder out, if there is one, gets its calls, and another one the
// verdict on the task.
func (o Options) Serve(
	ctx context.Context, box *Toolbox, policy *tools.CommandPolicy, out string, number int,
) (*mcpserve.Desk, error) {
	d, err := o.Open(ctx, box, fmt.Sprintf("mcp-%d-%d", os.Getpid(), number), policy)
	if err != nil {
		return nil, err
	}
	served := &mcpserve.Desk{Session: d.Session, Image: d.Images.Read, Close: d.Close}
	if out == "" {
		return served, nil
	}
	file, err := os.OpenFile(filepath.Join(out, fmt.Sprintf("session-%d.jsonl", number)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep the calls of a session: %w", err), d.Close())
	}
	served.Called = func(call episode.ToolCall) error {
		lines := json.NewEncoder(file)
		lines.SetEscapeHTML(false)
		return lines.Encode(NewLine(call))
	}
	served.Close = func() error {
		if o.Task == nil {
			return errors.Join(d.Close(), file.Close())
		}
		apart := box.Opened.Guarantees().Isolation["processes"] == "own"
		return errors.Join(d.Finish(o.Task, filepath.Join(out, fmt.Sprintf("session-%d.json", number)), apart), file.Close())
	}
	return served, nil
}
