package faults

import (
	"encoding/json"
	"fmt"
	"os"
)

// Recovery says how often the reference solution of a task succeeded in spite of a fault at one of its calls of a tool.
type Recovery struct {
	Task      string `json:"task"`
	Tool      string `json:"tool"`
	Class     string `json:"class"` // with its variant
	Tried     int    `json:"tried"`
	Recovered int    `json:"recovered"`
}

// Recoverable reads a list of recoveries. The result says whether a task recovers from a class of faults of a tool; nil where that was not tried.
func Recoverable(file string) (func(task, tool, class string) *bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("faults.recoverable: %w", err)
	}
	var all []Recovery
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("faults.recoverable: %s is not a list of trajgen check --faults --json: %w", file, err)
	}
	known := map[Recovery]bool{}
	for _, r := range all {
		known[Recovery{Task: r.Task, Tool: r.Tool, Class: r.Class}] = r.Recovered > 0
	}
	return func(task, tool, class string) *bool {
		can, tried := known[Recovery{Task: task, Tool: tool, Class: class}]
		if !tried {
			return nil
		}
		return &can
	}, nil
}
