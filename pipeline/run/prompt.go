package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"trajgen/datasets"
)

// Prompts are the run's own prompts, which come before those of tasks.
type Prompts struct {
	System    string `yaml:"system" flag:"system-prompt" experiment:"always" help:"file with the system prompt of tasks that bring none"`
	Ephemeral string `yaml:"ephemeral,omitempty" flag:"ephemeral-system-prompt" experiment:"given" help:"file with text that every system message ends with; flagged in the row, and left out by trajgen export --without-harness"`
	Prefill   string `yaml:"prefill,omitempty" experiment:"given" help:"file with messages that are said before every task's prompt, such as examples: a JSON or YAML list; flagged and left out likewise"`
}

// openPrompt reads the files of the section.
func (e *Experiment) openPrompt(context.Context) error {
	if path := e.File.Prompts.System; path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read system prompt: %w", err)
		}
		e.prompts.System, e.parts.System = string(data), digest("", data)
	}
	if path := e.File.Prompts.Ephemeral; path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read ephemeral system prompt: %w", err)
		}
		if e.prompts.Ephemeral = strings.TrimSpace(string(data)); e.prompts.Ephemeral == "" {
			return fmt.Errorf("the ephemeral system prompt %s is empty; leave it out", path)
		}
		e.parts.Ephemeral = digest("", []byte(e.prompts.Ephemeral))
	}
	if path := e.File.Prompts.Prefill; path != "" {
		messages, err := datasets.ReadMessages(path)
		if err != nil {
			return fmt.Errorf("prefill: %w", err)
		}
		said, err := json.Marshal(messages)
		if err != nil {
			return fmt.Errorf("prefill: %w", err)
		}
		e.prompts.Prefill, e.parts.Prefill = messages, digest("", said)
	}
	return nil
}
