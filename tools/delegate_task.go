package tools

import (
	"context"
	"strings"
	"time"

	"trajgen/registry"
	"trajgen/tools/delegate"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: delegate.Tool, Toolset: delegationToolset, NoSandbox: true, OffClock: true,
		Timeout: 1000 * time.Hour, // subagents have limits of their own, and waiting for a model counts for nothing
		Description: "Hands work to subagents and returns what each reports when it has finished. A subagent knows nothing of " +
			"this conversation: give it a goal that can be understood by itself, and all that it needs as context. It has your " +
			"tools, but asks the user nothing and remembers nothing; you get its final report alone. Give goal for one subagent, " +
			"or tasks for several. Use it for parts that need many steps and whose details you need not see; do what takes a " +
			"call or two yourself.",
	}, delegateTask))
}

type delegateArgs struct {
	_ struct{} `idle:"acp_command,acp_args,max_iterations"`

	Goal       string          `json:"goal,omitempty" alias:"task,prompt" doc:"What one subagent is to do; leave out with tasks." maxlen:"20000"`
	Context    string          `json:"context,omitempty" doc:"What it needs to know: paths, findings, errors, constraints. With tasks, for those that have none." maxlen:"100000"`
	Toolsets   []string        `json:"toolsets,omitempty" doc:"Toolsets that it may use, of yours; leave out for all of yours." maxitems:"50"`
	Tasks      []delegate.Task `json:"tasks,omitempty" doc:"Several tasks, each for a subagent of its own." maxitems:"64"`
	Role       string          `json:"role,omitempty" doc:"orchestrator: it may delegate as well, where that is allowed." enum:"leaf,orchestrator"`
	Background bool            `json:"background,omitempty" doc:"Not available: subagents end before the call returns."`
}

type delegateResult struct {
	Results []delegate.Result `json:"results"`
}

func delegateTask(ctx context.Context, env *registry.Env, args delegateArgs) (any, error) {
	if args.Background {
		return nil, registry.Failf("no_background", "subagents cannot work in the background, as what you would see of them then "+
			"depended on chance: leave background out, and the call returns when they have finished")
	}
	tasks := args.Tasks
	switch goal := strings.TrimSpace(args.Goal); {
	case goal != "" && len(tasks) > 0:
		return nil, registry.Failf("goal_and_tasks", "give goal for one subagent or tasks for several, not both")
	case goal != "":
		tasks = []delegate.Task{{Goal: goal}}
	case len(tasks) == 0:
		return nil, registry.Failf("no_goal", "give goal for one subagent, or tasks for several")
	}
	for i := range tasks {
		task := &tasks[i]
		if task.Goal = strings.TrimSpace(task.Goal); task.Goal == "" {
			return nil, registry.Failf("no_goal", "tasks[%d].goal is empty", i)
		}
		if task.Context == "" {
			task.Context = args.Context
		}
		if len(task.Toolsets) == 0 {
			task.Toolsets = args.Toolsets
		}
		if task.Role == "" {
			task.Role = args.Role
		}
	}
	agents, ok := registry.Service[delegate.Agents](env.Session)
	if !ok {
		return nil, registry.Failf("no_subagents", "there are subagents only in an episode of a run: do the work yourself")
	}
	results, err := agents.Delegate(ctx, delegate.Call{ID: env.CallID, Turn: env.Turn, Index: env.Index}, tasks)
	if err != nil {
		return nil, err
	}
	return delegateResult{results}, nil
}
