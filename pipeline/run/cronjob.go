package run

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"trajgen/tools/cron"
	"trajgen/tools/threats"
)

// JobsDir is where jobs are. Unlike the state of sandboxes they are to be there after the machine was off.
func JobsDir(given string) (string, error) {
	if given == "" && os.Getenv("XDG_STATE_HOME") != "" {
		given = filepath.Join(os.Getenv("XDG_STATE_HOME"), "trajgen", "cron")
	}
	if given == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("--store: %w", err)
		}
		given = filepath.Join(home, ".local", "state", "trajgen", "cron")
	}
	return filepath.Abs(given)
}

// CompleteJob checks what only this machine knows of a job.
func CompleteJob(j *cron.Job) (err error) {
	if j.Workdir, err = os.Getwd(); err != nil {
		return err
	}
	how, where := j.Delivery()
	switch {
	case j.Deliver == "origin" || how != "" && where == "" || how == cron.ByMessage && (j.RunFile == "" || !strings.Contains(where, ":")):
		return fmt.Errorf("--deliver is %q; want file:PATH, command:LINE, or PLATFORM:CHANNEL with -f run.yaml, whose messages: names it", j.Deliver)
	case how == cron.ToFile:
		if where, err = filepath.Abs(where); err != nil {
			return err
		}
		j.Deliver = "file:" + where
	}
	if j.RunFile != "" {
		if j.RunFile, err = filepath.Abs(j.RunFile); err != nil {
			return err
		}
	}
	if how == cron.ByMessage {
		if err := CheckDelivery(*j); err != nil {
			return err
		}
	}
	if len(j.Command) > 0 {
		if j.Prompt != "" || j.RunFile != "" && how != cron.ByMessage || len(j.Toolsets)+len(j.ContextFrom) > 0 {
			return errors.New("a job has a command or a prompt; --prompt, -f, --toolsets and --context-from do not go with a command")
		}
		_, err = exec.LookPath(j.Command[0])
		return err
	}
	if j.Prompt == "" || j.RunFile == "" {
		return errors.New("want a command after --, or --prompt TEXT and -f run.yaml")
	}
	if found := threats.Scan(j.Prompt); len(found) > 0 {
		return fmt.Errorf("the prompt looks like %s (%q)", strings.ReplaceAll(found[0].ID, "_", " "), found[0].Text)
	}
	file := Default()
	if err := Decode(j.RunFile, "a run file", &file); err != nil {
		return err
	}
	file.Dataset.Path = []string{"task.jsonl"} // of the prompt
	return file.Validate()
}
