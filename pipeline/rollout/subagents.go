package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/registry"
	"trajgen/tools/delegate"
)

// subagents plays what an episode's agent delegates: each subagent is an episode of its own, with a key made of its parent's,
// that is kept among the children of its parent. The tool delegate_task finds it among the services of the session; its calls
// run one by one.
type subagents struct {
	attempt *attempt
	begun   int
	playing sync.WaitGroup // what end has to wait for, should a call be given up

	mu    sync.Mutex // guards fault
	fault error      // what ends the episode
}

// mostSubagents bounds those of one episode, as all are in memory until the tree is whole.
const mostSubagents = 64

// order is a subagent to be played.
type order struct {
	task    *episode.Task
	ep      *episode.Episode
	tools   []string
	enabled []string // the toolsets that tools are of
	tokens  int      // that it may use; 0 sets no limit
	usd     float64  // likewise
	played  *attempt
}

// Delegate implements delegate.Agents.
func (s *subagents) Delegate(ctx context.Context, from delegate.Call, tasks []delegate.Task) ([]delegate.Result, error) {
	s.playing.Add(1)
	defer s.playing.Done()
	a := s.attempt
	orders, err := s.orders(from, tasks)
	if err != nil {
		return nil, err
	}
	s.begun += len(orders)
	err = s.play(ctx, orders)
	for _, o := range orders {
		if o.played == nil {
			continue
		}
		a.ep.Children = append(a.ep.Children, o.ep)
		a.account.tokens += o.played.account.tokens
		a.account.usd += o.played.account.usd
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fault = err
		return nil, err
	}
	results := make([]delegate.Result, len(orders))
	for i, o := range orders {
		results[i] = resultOf(i, o.ep)
	}
	return results, nil
}

// broken is what a subagent died of that was not its doing, if one did.
func (s *subagents) broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}

// orders are the subagents of a call, or what is wrong with its tasks.
func (s *subagents) orders(from delegate.Call, tasks []delegate.Task) ([]*order, error) {
	a, most := s.attempt, s.attempt.Delegation.WithDefaults()
	switch {
	case len(tasks) > most.MaxChildren:
		return nil, registry.Failf("too_many_tasks", "%d tasks, and a call takes at most %d: make several calls",
			len(tasks), most.MaxChildren)
	case s.begun+len(tasks) > mostSubagents:
		return nil, registry.Failf("too_many_subagents", "you have had %d subagents, of at most %d: do the rest yourself",
			s.begun, mostSubagents)
	case a.clock.left <= 0:
		return nil, registry.Failf("time_up", "no time is left")
	}
	var orders []*order
	for i, task := range tasks {
		o, err := s.order(from, i, task)
		if err != nil {
			return nil, err
		}
		// Equal shares of what is left: the first must not take it all, and who is first may be chance.
		if a.limits.Tokens > 0 {
			o.tokens = max((a.limits.Tokens-a.account.tokens)/len(tasks), 1)
		}
		if a.most > 0 {
			o.usd = max((a.most-a.account.usd)/float64(len(tasks)), math.SmallestNonzeroFloat64)
		}
		orders = append(orders, o)
	}
	return orders, nil
}

// order is the subagent of a task, with those of the agent's tools that it may have.
func (s *subagents) order(from delegate.Call, number int, task delegate.Task) (*order, error) {
	a, settings := s.attempt, s.attempt.Delegation.WithDefaults()
	depth, role := 1, episode.RoleLeaf
	if a.ep.Origin != nil {
		depth += a.ep.Origin.Depth
	}
	if task.Role == episode.RoleOrchestrator && depth < settings.Depth {
		role = episode.RoleOrchestrator
	}
	toolsets, enabled := a.ep.Toolsets, a.kit.enabled
	if len(task.Toolsets) > 0 {
		toolsets = slices.Sorted(slices.Values(task.Toolsets))
		enabled = toolsets
	}
	wanted, err := a.kit.registry.Resolve(enabled, nil)
	if err != nil {
		return nil, registry.Failf("unknown_toolset", "tasks[%d]: %v", number, err)
	}
	may := func(name string) bool {
		return a.kit.toolset.Has(name) && name != delegate.Tool && !slices.Contains(delegate.Withheld, name)
	}
	tools := slices.DeleteFunc(wanted, func(name string) bool { return !may(name) })
	if len(tools) == 0 && len(task.Toolsets) > 0 {
		return nil, registry.Failf("no_tools", "tasks[%d]: you have no tool of the toolsets %s that a subagent may have",
			number, strings.Join(toolsets, ", "))
	}
	if role == episode.RoleOrchestrator {
		tools = append(tools, delegate.Tool)
	}
	key := a.ep.Key.Child(from.Turn, from.Index, number)
	return &order{
		tools: tools, enabled: enabled, task: s.task(task, role),
		ep: &episode.Episode{
			Schema: episode.SchemaVersion, ID: key.ID(), Key: key, Row: a.ep.Row, Run: a.ep.Run, Attempt: a.ep.Attempt, Toolsets: toolsets,
			Origin: &episode.Origin{Parent: a.ep.ID, Call: from.ID, Turn: from.Turn, Depth: depth, Role: role},
		},
	}, nil
}

const (
	leafPrompt = "You are a subagent: another agent has given you one piece of its work. Do that piece with your tools, and " +
		"nothing beyond it. You cannot ask questions. When you have finished, answer with a report that stands by itself, as " +
		"all else of this conversation is lost: what you did, what you found, which files you made or changed, and what did " +
		"not work."
	orchestratorPrompt = " You may hand parts of it to subagents of your own with delegate_task; what they report is for you, " +
		"and your report is for the agent."
)

// task is what a subagent is told, in the world of its parent's task. Where it has a sandbox of its own it begins as that
// task does.
func (s *subagents) task(from delegate.Task, role string) *episode.Task {
	of, settings := s.attempt.task, s.attempt.Delegation.WithDefaults()
	task := &episode.Task{ID: of.ID, Row: of.Row, System: leafPrompt, World: episode.World{Sites: of.Sites},
		Tools: episode.Tools{MCP: of.MCP, Servers: of.Servers}, Limits: episode.Limits{Turns: settings.Turns}}
	if role == episode.RoleOrchestrator {
		task.System += orchestratorPrompt
	}
	text := from.Goal
	if from.Context != "" {
		text += "\n\nContext:\n" + from.Context
	}
	task.Prompt = []episode.Message{{Role: "user", Content: text}}
	if settings.Sandbox == delegate.InOwn {
		task.Files, task.Setup, task.Image, task.Build, task.Cwd, task.Env = of.Files, of.Setup, of.Image, of.Build, of.Cwd, of.Env
		task.Services, task.Hosts = of.Services, of.Hosts
		task.Network, task.Allow, task.Resources, task.Root = of.Network, of.Allow, of.Resources, of.Root
	}
	return task
}

// play plays subagents, so many at once as the run allows. The agent's clock goes on by what those took of theirs that were
// played one after another. An error is what ends the episode; it also ends the other subagents.
func (s *subagents) play(ctx context.Context, orders []*order) error {
	run, left := ctx, s.attempt.clock.left
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan *order, len(orders))
	for _, o := range orders {
		queue <- o
	}
	close(queue)
	var lanes sync.WaitGroup
	var mu sync.Mutex // guards what follows
	var longest time.Duration
	var failed error
	var bug any
	end := func(err error) {
		failed = cmp.Or(failed, err)
		cancel(err)
	}
	for range min(s.attempt.Delegation.WithDefaults().Parallel, len(orders)) {
		lanes.Go(func() {
			used := time.Duration(0)
			defer func() {
				caught := recover()
				mu.Lock()
				defer mu.Unlock()
				if longest = max(longest, used); caught != nil {
					bug = caught
					end(errors.New("a subagent panicked"))
				}
			}()
			for o := range queue {
				if ctx.Err() != nil {
					return
				}
				o.played = s.attempt.sub(o, left-used)
				err := o.played.playSub(ctx)
				if used += o.played.limits.Time - o.played.clock.left; err != nil {
					mu.Lock()
					end(err)
					mu.Unlock()
				}
			}
		})
	}
	lanes.Wait()
	if run.Err() == nil { // else the call may have been given up, and the clock is another's
		s.attempt.clock.left = left - longest
	}
	if bug != nil {
		panic(bug) // on the goroutine of the call, which deals with bugs of tools
	}
	return failed
}

// sub sets a subagent up.
func (a *attempt) sub(o *order, left time.Duration) *attempt {
	c := a.begin(o.task, o.ep)
	c.parent, c.tools, c.kit.enabled, c.most = a, o.tools, o.enabled, o.usd
	c.limits.Tokens, c.limits.Time = o.tokens, max(min(c.limits.Time, left), 0)
	c.clock.left = c.limits.Time
	if a.Delegation.WithDefaults().Sandbox == delegate.InParents {
		c.sandbox, c.guest = a.sandbox, true
	}
	return c
}

// playSub plays a subagent to its end. An error ends its parent's episode, too: what is not the subagent's doing must not look
// like that, nor like its parent's.
func (a *attempt) playSub(ctx context.Context) error {
	err := a.play(ctx)
	ep := a.ep
	switch {
	case err != nil: // it did not end; what it used is kept all the same
		ep.Outcome, ep.Stop = episode.Cancelled, episode.StopFault
		ep.Fault = &episode.Fault{Outcome: episode.Cancelled, Class: "cancelled", Message: err.Error()}
		return err
	case ep.Outcome.AgentsDoing():
		return nil
	case ep.Differed != nil:
		return a.parent.progress.follows(ep.Differed)
	case ep.Outcome == episode.Cancelled:
		return fmt.Errorf("subagent %s: %w: %s", ep.ID, errDamaged, ep.Fault.Message)
	}
	return faulty(ep.Fault.Outcome, ep.Fault.Class, fmt.Errorf("subagent %s: %s", ep.ID, ep.Fault.Message))
}

// tracedCalls bounds how many calls of a subagent its parent is shown.
const tracedCalls = 100

// resultOf is what a subagent's parent learns of it.
func resultOf(number int, ep *episode.Episode) delegate.Result {
	r := delegate.Result{
		Task: number, Status: "failed", Role: ep.Origin.Role, Summary: ep.Answer, APICalls: len(ep.Turns), Model: ep.Model,
		ExitReason: string(ep.Stop), ToolTrace: []delegate.Called{},
	}
	switch ep.Stop {
	case episode.StopAnswered:
		r.Status = "completed"
	case episode.StopTimeout:
		r.Status = "timeout"
	}
	for i := len(ep.Turns) - 1; i >= 0 && r.Summary == ""; i-- { // what it said last may still help
		r.Summary = ep.Messages[ep.Turns[i].Message].Content
	}
	if ep.Usage.Reported {
		r.Tokens = &delegate.Tokens{Input: ep.Usage.Prompt, Output: ep.Usage.Completion}
	}
	for i := range ep.Calls {
		if call := &ep.Calls[i]; call.Parent == "" && len(r.ToolTrace) < tracedCalls {
			r.ToolTrace = append(r.ToolTrace, delegate.Called{Tool: call.Name, Status: string(call.Status)})
		}
	}
	return r
}
