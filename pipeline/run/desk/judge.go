package desk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"trajgen/outputs/log/disk"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/reward"
	"trajgen/registry"
	"trajgen/sandbox"
)

// Prompt is what a task asks for; "" for none.
func Prompt(task *episode.Task) string {
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

// judge judges the sandbox of a session that has ended. A check of what the agent said has no verdict: clients do not send it.
func (d *Desk) judge(task *episode.Task, apart bool) judged {
	j := judged{Task: task.ID}
	if len(task.Verify) == 0 {
		j.Why = "the task has no verifier"
		return j
	}
	if slices.ContainsFunc(task.Verify, reward.OfAnswer) {
		j.Why = "a verifier looks at what the agent said, which clients do not send"
		return j
	}
	ctx, cancel := context.WithTimeout(context.Background(), judgeTime) // that of the session has ended
	defer cancel()
	subject := reward.Subject{Sandbox: func(context.Context) (sandbox.Sandbox, error) { return d.Sandbox, nil }, Apart: apart, Own: d.own}
	if sites, ok := registry.Service[interface {
		State(ctx context.Context, site string) (json.RawMessage, error)
	}](d.Session); ok {
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

// Finish judges a session's task, writes the verdict to a file, and closes the desk. apart says that the sandbox has its own processes.
func (d *Desk) Finish(task *episode.Task, path string, apart bool) error {
	text, err := json.MarshalIndent(d.judge(task, apart), "", "  ")
	if err == nil {
		err = disk.WriteFile(disk.Real{}, path, disk.Bytes(append(text, '\n')))
	}
	return errors.Join(err, d.Close())
}
