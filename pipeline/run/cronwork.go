package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"trajgen/outputs/journal"
	"trajgen/tools/cron"
)

// PromptWork plays a job's prompt as the one task of a run.
func PromptWork(store *cron.Store, tick cron.Tick) (cron.Work, error) {
	j := tick.Job
	t, err := store.Read()
	if err != nil {
		return cron.Work{}, err
	}
	before, err := store.Context(t, j.ContextFrom)
	if err != nil {
		return cron.Work{}, err
	}
	task, err := json.Marshal(map[string]string{"id": j.Name, "prompt": before + j.Prompt})
	if err != nil {
		return cron.Work{}, err
	}
	dir := filepath.Join(store.Dir, "runs", j.ID+"-"+tick.At.UTC().Format("20060102T150405.000"))
	dataset := filepath.Join(store.Dir, "output", j.ID+".jsonl")
	if err := os.WriteFile(dataset, append(task, '\n'), 0o600); err != nil {
		return cron.Work{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return cron.Work{}, err
	}
	args := []string{program, "run", "-f", j.RunFile, "--dataset", dataset, "--out", dir, "--quiet"}
	if len(j.Toolsets) > 0 {
		args = append(args, "--toolsets", strings.Join(j.Toolsets, ","))
	}
	return cron.Work{Args: args, After: func(output *os.File) error { return writeAnswers(dir, output) }}, nil
}

// writeAnswers writes what the agent of a run answered, in place of what the run said.
func writeAnswers(dir string, output *os.File) (err error) {
	reader, err := journal.OpenReader(JournalDir(dir))
	if err != nil {
		return err
	}
	defer reader.Close()
	var answers strings.Builder
	for _, entry := range reader.Entries() {
		ep, err := reader.Episode(entry.ID)
		if err != nil {
			return err
		}
		fmt.Fprintln(&answers, ep.Answer)
	}
	if answers.Len() == 0 {
		return nil
	}
	if err := output.Truncate(0); err != nil {
		return err
	}
	_, err = output.WriteAt([]byte(answers.String()), 0)
	return err
}
