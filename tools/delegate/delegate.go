// Package delegate says what an agent can hand to subagents, and how a run file bounds that.
package delegate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Where subagents work.
const (
	InParents = "parent" // in the sandbox of the agent that started them: they see its files, and it sees theirs
	InOwn     = "own"    // each in one of its own, with the task's files and setup
)

// Settings bound the subagents of an episode, as in the run file. A zero is the default.
type Settings struct {
	MaxChildren int    `yaml:"max_children,omitempty" experiment:"given" help:"subagents that one call of delegate_task may start (default 3)"`
	Depth       int    `yaml:"depth,omitempty" flag:"delegation-depth" experiment:"given" help:"generations of subagents: from 2 on, those with the role orchestrator may delegate, too (default 1)"`
	Turns       int    `yaml:"turns,omitempty" flag:"delegation-turns" experiment:"given" help:"model calls of a subagent, at most (default 50)"`
	Sandbox     string `yaml:"sandbox,omitempty" flag:"delegation-sandbox" experiment:"given" help:"where subagents work: parent (in the sandbox of the agent that started them; default) or own (each in one of its own, with the task's files)"`
	Parallel    int    `yaml:"parallel,omitempty" flag:"delegation-parallel" experiment:"given" help:"subagents of one call that work at the same time (default: 1 in the parent's sandbox, all in sandboxes of their own)"`
}

const (
	maxDepth    = 4
	maxChildren = 64
)

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var errs []error
	if s.Sandbox != "" && s.Sandbox != InParents && s.Sandbox != InOwn {
		errs = append(errs, fmt.Errorf("delegation.sandbox is %q; %s or %s", s.Sandbox, InParents, InOwn))
	}
	if s.Depth > maxDepth || s.MaxChildren > maxChildren {
		errs = append(errs, fmt.Errorf("delegation.depth is %d and max_children %d; at most %d and %d",
			s.Depth, s.MaxChildren, maxDepth, maxChildren))
	}
	return errors.Join(errs...)
}

// WithDefaults are the settings with the defaults of those that are not given.
func (s Settings) WithDefaults() Settings {
	s.MaxChildren, s.Depth, s.Turns = cmp.Or(s.MaxChildren, 3), cmp.Or(s.Depth, 1), cmp.Or(s.Turns, 50)
	s.Sandbox = cmp.Or(s.Sandbox, InParents)
	if s.Parallel == 0 && s.Sandbox == InParents {
		s.Parallel = 1 // what two do in one place at once depends on chance
	}
	s.Parallel = cmp.Or(s.Parallel, s.MaxChildren)
	return s
}

// Withheld are the tools that no subagent gets: they speak to the user, change what outlasts the episode, or call others
// unseen. An orchestrator has delegate_task, and a leaf does not.
var Withheld = []string{"clarify", "memory", "execute_code", "send_message", "cronjob"}

// Tool is the name of the tool that delegates.
const Tool = "delegate_task"

// Call is the call of the tool.
type Call struct {
	ID          string
	Turn, Index int
}

// Task is what one subagent is to do.
type Task struct {
	Goal     string   `json:"goal" alias:"task,prompt,description" doc:"What is to be done, so that it can be understood by itself." minlen:"1" maxlen:"20000"`
	Context  string   `json:"context,omitempty" doc:"What the subagent needs to know: paths, findings, errors, constraints." maxlen:"100000"`
	Toolsets []string `json:"toolsets,omitempty" doc:"Toolsets that it may use, of yours; leave out for all of yours." maxitems:"50"`
	Role     string   `json:"role,omitempty" doc:"orchestrator: it may delegate as well, where that is allowed." enum:"leaf,orchestrator"`

	_ struct{} `idle:"acp_command,acp_args,max_iterations"`
}

// Result is what came of a task.
type Result struct {
	Task       int      `json:"task_index"`
	Status     string   `json:"status"` // completed, failed or timeout
	Role       string   `json:"role"`
	Summary    string   `json:"summary"` // its final answer
	APICalls   int      `json:"api_calls"`
	Model      string   `json:"model,omitempty"`
	ExitReason string   `json:"exit_reason"`
	Tokens     *Tokens  `json:"tokens,omitempty"` // absent when the server did not say
	ToolTrace  []Called `json:"tool_trace"`
}

// Tokens are those of a subagent's turns.
type Tokens struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// Called is a tool that a subagent called.
type Called struct {
	Tool   string `json:"tool"`
	Status string `json:"status"`
}

// Agents plays subagents. An episode of a run has it as a service.
type Agents interface {
	// Delegate plays a subagent for each task and returns their results in that order. A *registry.Failure says what is wrong with
	// the tasks, before any of them has begun. Any other error is the episode's, not the agent's.
	Delegate(ctx context.Context, from Call, tasks []Task) ([]Result, error)
}
