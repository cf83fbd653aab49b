package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"trajgen/datasets"
)

// openPrompt reads what the run puts before its tasks' prompts.
func (e *Experiment) openPrompt(context.Context) error {
	if path := e.File.SystemPrompt; path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read system prompt: %w", err)
		}
		e.system, e.parts.System = string(data), digest("", data)
	}
	if path := e.File.EphemeralSystemPrompt; path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read ephemeral system prompt: %w", err)
		}
		if e.ephemeral = strings.TrimSpace(string(data)); e.ephemeral == "" {
			return fmt.Errorf("the ephemeral system prompt %s is empty; leave it out", path)
		}
		e.parts.Ephemeral = digest("", []byte(e.ephemeral))
	}
	if path := e.File.Prefill; path != "" {
		messages, err := datasets.ReadMessages(path)
		if err != nil {
			return fmt.Errorf("prefill: %w", err)
		}
		said, err := json.Marshal(messages)
		if err != nil {
			return fmt.Errorf("prefill: %w", err)
		}
		e.prefill, e.parts.Prefill = messages, digest("", said)
	}
	return nil
}
