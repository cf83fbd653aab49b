package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"trajgen/datasets"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/registry"
	"trajgen/sandbox"
)

// findTask finds the task that sessions are about; nil where the flags name none.
func (o *serveOptions) findTask(ctx context.Context) (*episode.Task, error) {
	if o.taskID == "" {
		return nil, nil
	}
	source, _, err := datasets.Settings{Path: datasets.Paths{o.dataset}, Map: o.mapping}.Open(datasets.Options{})
	if err != nil {
		return nil, err
	}
	for task, err := range source.Tasks(ctx) {
		if err != nil {
			return nil, err
		}
		if task.ID == o.taskID {
			return task, nil
		}
	}
	return nil, fmt.Errorf("%s has no task %q (trajgen datasets show lists them)", o.dataset, o.taskID)
}

// promptOf is what a task asks for; "" for none.
func promptOf(task *episode.Task) string {
	if task == nil {
		return ""
	}
	var all []string
	for _, message := range task.Prompt {
		all = append(all, message.Content)
	}
	return strings.Join(all, "\n\n")
}

// judged is what became of a task in a session.
type judged struct {
	Task    string           `json:"task"`
	Reward  *float64         `json:"reward"` // null without a verdict
	Rewards []episode.Reward `json:"rewards,omitempty"`
	Why     string           `json:"why,omitempty"` // there is none
}

// judgeTime bounds the verdict on a session.
const judgeTime = 10 * time.Minute

// judge judges the sandbox of a session that has ended. A check of the answer has no verdict: clients do not send what their agent says.
func (d *desk) judge(task *episode.Task, apart bool) judged {
	j := judged{Task: task.ID}
	if len(task.Verify) == 0 {
		j.Why = "the task has no verifier"
		return j
	}
	if slices.ContainsFunc(task.Verify, reward.OfAnswer) {
		j.Why = "a verifier looks at the agent's answer, which clients do not send"
		return j
	}
	ctx, cancel := context.WithTimeout(context.Background(), judgeTime) // that of the session has ended
	defer cancel()
	subject := reward.Subject{Sandbox: func(context.Context) (sandbox.Sandbox, error) { return d.sandbox, nil }, Apart: apart}
	if sites, ok := registry.Service[interface {
		State(ctx context.Context, site string) (json.RawMessage, error)
	}](d.session); ok {
		subject.State = sites.State
	}
	rewards, mean, err := reward.Verify(ctx, task.Verify, subject)
	if err != nil {
		j.Why = err.Error()
		return j
	}
	j.Reward, j.Rewards = &mean, rewards
	return j
}

// finish judges a session's task, writes the verdict, and closes the desk.
func (o serveOptions) finish(d *desk, number int, apart bool) error {
	text, err := json.MarshalIndent(d.judge(o.task, apart), "", "  ")
	if err == nil {
		path := filepath.Join(o.out, fmt.Sprintf("session-%d.json", number))
		err = disk.WriteFile(disk.Real{}, path, disk.Bytes(append(text, '\n')))
	}
	return errors.Join(err, d.close())
}
