package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// grace is how long a call waits for a tool to notice that its time is up. A tool that has not returned by then is
// stuck: the call returns without it, and the episode ends with a tool_error, as its goroutine may go on doing things.
const grace = 5 * time.Second

var errDeadline = errors.New("the call's time is up")

// Call runs one call through the whole dispatch: name, arguments, deadline, tool, result, trace. It never panics, and
// the Result is always well-formed JSON. Calls that run at the same time should have different ids.
func (s *Session) Call(ctx context.Context, req Request) episode.ToolCall {
	place := s.reserve(req)
	return s.run(ctx, s.prepare(req), place)
}

// prepared is a call before it runs: a tool with its arguments, or the reason why there is none.
type prepared struct {
	call    episode.ToolCall
	tool    *Tool
	args    arguments
	refused *Failure
}

func (s *Session) prepare(req Request) *prepared {
	p := &prepared{call: episode.ToolCall{
		ID: req.ID, Parent: req.Parent, Turn: req.Turn, Index: req.Index, Name: req.Name, RawArguments: req.Arguments,
		Started: s.cfg.Now(),
	}}
	name, tool, missing := s.tools.lookup(req.Name)
	if tool != nil {
		p.call.Toolset = tool.Toolset
	}
	if name != req.Name && (tool != nil || missing != "") {
		// The trace has no field for it, and the message has the name as it was written.
		p.call.Name = name
		p.call.Coerced = append(p.call.Coerced, "name:"+req.Name)
	}
	switch {
	case missing != "":
		p.refused = &Failure{
			Class: "unavailable", Status: episode.CallUnavailable,
			Message: fmt.Sprintf("tool %q is not available: %s", name, missing),
		}
		return p
	case tool == nil:
		p.refused = s.tools.unknown(req.Name)
		return p
	}
	defer func() { // parsing takes what strangers wrote through libraries that are not ours
		if value := recover(); value != nil {
			s.bug(p, "panic", fmt.Sprint(value), stack())
			p.refused = &Failure{Class: "panic", Message: sanitise(name + ": the arguments could not be read")}
		}
	}()
	args, problems := tool.plan.parse(req.Arguments)
	p.tool, p.args = tool, args
	p.call.Arguments, p.call.Repaired = args.shown, args.repaired
	p.call.Coerced = append(p.call.Coerced, args.coerced...)
	if problems != nil {
		p.refused = tool.invalid(problems)
	}
	return p
}

func (t *Toolset) unknown(name string) *Failure {
	have := "none"
	if len(t.names) > 0 {
		have = strings.Join(t.names, ", ")
	}
	return &Failure{
		Class: "unknown_tool", Status: episode.CallUnknownTool,
		Message: fmt.Sprintf("tool %s does not exist%s; available tools: %s",
			quote(shorten(name, 100)), didYouMean(name, t.names), have),
	}
}

// outcome is what came of running a tool.
type outcome struct {
	text      string
	err       error
	panicked  any
	stack     string
	malformed bool // the tool returned what is no JSON
}

// run plays a prepared call and writes the trace.
func (s *Session) run(ctx context.Context, p *prepared, place *record) episode.ToolCall {
	started := s.cfg.Now()
	limit := DefaultMaxResult
	if p.tool != nil && p.tool.MaxResult > 0 {
		limit = p.tool.MaxResult
	}
	var o outcome
	switch {
	case p.refused != nil:
		o.err = p.refused
	case s.isClosed():
		o.err = Failf("closed", "the episode has ended")
	case ctx.Err() != nil:
		o.err = context.Cause(ctx)
	default:
		o, p.call.SandboxTime = s.execute(ctx, p)
	}
	failure := s.settle(ctx, p, &o)
	p.call.ResultBytes = len(o.text)
	p.call.Result, p.call.Truncated = fitResult(o.text, limit, failure)
	p.call.Elapsed = s.cfg.Now().Sub(started)
	p.call.Started = started
	s.finish(place, p.call)
	return p.call
}

func (s *Session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// invocation is one run of a tool. It is the context that the tool gets, so that sandbox operations find the meter.
type invocation struct {
	context.Context
	meter meter
	env   Env
	done  chan outcome
}

func (v *invocation) Value(key any) any {
	if key == (meterKey{}) {
		return &v.meter
	}
	return v.Context.Value(key)
}

// execute runs the tool in a goroutine of its own, so that one that ignores its context cannot hold the episode.
func (s *Session) execute(ctx context.Context, p *prepared) (outcome, time.Duration) {
	timeout := p.tool.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errDeadline)
	defer cancel()
	v := &invocation{Context: ctx, done: make(chan outcome, 1)} // one place: a stuck tool finds nobody waiting
	v.meter.now = s.cfg.Now
	v.env = Env{Session: s, CallID: p.call.ID, Turn: p.call.Turn, Sandbox: s.get, Logger: s.cfg.Logger}
	go v.invoke(p.tool, p.args.given)
	o, ok := v.wait()
	spent, gone := v.meter.end()
	switch {
	case !ok:
		o.err = errStuck
	case gone != nil && o.panicked == nil && !errors.Is(o.err, sandbox.ErrGone):
		o.err = gone
	}
	if o.err != nil && ctx.Err() != nil && context.Cause(ctx) == errDeadline && !isFailure(o.err) &&
		errors.Is(o.err, context.DeadlineExceeded) {
		o.err = errDeadline // tools report what they know: the context's Err
	}
	return o, spent
}

var errStuck = errors.New("the tool ignores that its time is up")

func (v *invocation) wait() (outcome, bool) {
	select {
	case o := <-v.done:
		return o, true
	case <-v.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case o := <-v.done:
		return o, true
	case <-timer.C:
		return outcome{}, false
	}
}

func (s *Session) metered(ctx context.Context) (box sandbox.Sandbox, err error) {
	err = metered(ctx, func() (err error) { box, err = s.sandbox(ctx); return })
	return box, err
}

func (v *invocation) invoke(tool *Tool, arguments json.RawMessage) {
	var o outcome
	returned := false
	defer func() {
		if !returned {
			if o.panicked = recover(); o.panicked == nil {
				o.panicked = "the tool ended its goroutine"
			}
			o.stack = stack()
		}
		v.done <- o
	}()
	result, err := tool.call(v, &v.env, arguments)
	if o.err = err; err == nil {
		o.text, err = encode(result)
		o.err, o.malformed = err, err != nil
	}
	returned = true
}

func stack() string { return string(debug.Stack()) }

func isFailure(err error) bool {
	_, ok := errors.AsType[*Failure](err)
	return ok
}
