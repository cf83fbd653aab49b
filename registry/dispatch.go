package registry

import (
	"context"
	"fmt"
	"strings"

	"trajgen/pipeline/episode"
)

// Call runs one call through the whole dispatch: name, arguments, hooks, deadline, tool, result, trace. It never panics, and the
// Result is always valid JSON. A call without a parent is a turn of its own. Calls that run at the same time should have different
// ids.
func (s *Session) Call(ctx context.Context, req Request) episode.ToolCall {
	p := s.prepare(req)
	s.run(ctx, p)
	if req.Parent == "" {
		s.endTurn(ctx, p)
	}
	return p.call
}

// prepared is a call from its request to its place in the trace.
type prepared struct {
	call    episode.ToolCall
	tool    *Tool
	args    arguments
	refused *Failure
	failure string    // the model's error message for a call that failed
	first   *prepared // the same call earlier in the turn, whose result this one shares
	v       invocation

	done  bool        // guarded by Session.mu; from then on call is, too
	inner []*prepared // guarded by Session.mu
}

// prepare finds the tool and its arguments, or the reason to refuse the call.
func (s *Session) prepare(req Request) *prepared {
	var bridged bridged
	if !req.Cut { // the meaning of a cut call is unknown
		req, bridged = s.tools.unwrap(req)
	}
	p := &prepared{call: episode.ToolCall{
		ID: req.ID, Parent: req.Parent, Turn: req.Turn, Index: req.Index, Name: req.Name, RawArguments: req.Arguments,
		Via: bridged.via, Repaired: bridged.repaired,
	}}
	p.v.env = Env{Session: s, CallID: req.ID, Parent: req.Parent, Turn: req.Turn, Sandbox: s.get, Logger: s.cfg.Logger}
	for _, path := range bridged.coerced { // marked, as they are not the inner tool's
		p.call.Coerced = append(p.call.Coerced, toolCall+":"+path)
	}
	s.reserve(p)
	if bridged.panicked != nil {
		s.bug(p, "panic", fmt.Sprint(bridged.panicked), bridged.stack)
	}
	if bridged.refused != nil {
		p.call.Toolset, p.refused = bridgeToolset, bridged.refused
		return p
	}
	name, tool, missing := s.tools.lookup(req.Name)
	if p.call.Toolset = s.tools.homes[name]; tool != nil {
		p.call.Toolset = tool.Toolset
	}
	if name != req.Name && (tool != nil || missing != "") {
		// The trace has no field for this, and the message keeps the name as the model wrote it.
		p.call.Name = name
		p.call.Coerced = append(p.call.Coerced, "name:"+req.Name)
	}
	switch {
	case missing != "":
		p.refused = &Failure{
			Class: "unavailable", Status: episode.CallUnavailable,
			Message: fmt.Sprintf("tool %q is not available: %s", name, missing),
		}
	case tool == nil:
		p.refused = s.tools.unknown(req.Name)
	case req.Cut:
		p.refused = tool.invalid([]problem{{Field: "arguments", Expected: "a JSON object", Got: "text that ends too early: " + shorten(req.Arguments, 80)}})
	default:
		s.understand(p, tool)
	}
	return p
}

// understand parses the arguments.
func (s *Session) understand(p *prepared, tool *Tool) {
	defer func() { // a library may panic on hostile arguments
		if value := recover(); value != nil {
			s.bug(p, "panic", fmt.Sprint(value), stack())
			p.refused = unreadable(p.call.Name)
		}
	}()
	args, problems := tool.plan().parse(p.call.RawArguments)
	p.tool, p.args = tool, args
	p.call.Arguments, p.call.Repaired = args.shown, args.repaired || p.call.Repaired
	p.call.Coerced = append(p.call.Coerced, args.coerced...)
	if problems != nil {
		p.refused = tool.invalid(problems)
	}
}

func unreadable(name string) *Failure {
	return &Failure{Class: "panic", Message: sanitise(name + ": the arguments could not be read")}
}

func (t *Toolset) unknown(name string) *Failure {
	have, meant := "none", ""
	if len(t.names) > 0 {
		have = strings.Join(t.names, ", ")
	}
	if like := suggestion(name, t.names); like != "" {
		meant = " (did you mean " + quote(like) + "?)"
	}
	return &Failure{
		Class: "unknown_tool", Status: episode.CallUnknownTool,
		Message: fmt.Sprintf("tool %s does not exist%s; available tools: %s", quote(shorten(name, 100)), meant, have),
	}
}

// run runs a prepared call and completes its trace.
func (s *Session) run(ctx context.Context, p *prepared) {
	started := s.cfg.Now()
	var o outcome
	switch {
	case p.refused != nil:
		o.err = p.refused
	case s.isClosed():
		o.err = Failf("closed", "the episode has ended")
	case ctx.Err() != nil:
		o.err = Failf("skipped", "skipped: %v", context.Cause(ctx))
	default:
		if o.err = s.before(ctx, p); o.err == nil {
			o, p.call.SandboxTime = s.execute(ctx, p)
			p.call.Untrusted, p.call.Runner = p.tool.Untrusted, p.tool.Runner
		}
	}
	s.settle(ctx, p, &o)
	p.call.Result = o.text
	s.transform(ctx, p)
	p.call.Result = s.mask(p, p.call.Result)
	s.fit(ctx, p)
	p.call.Elapsed = s.cfg.Now().Sub(started)
	p.call.Started = started
	s.after(ctx, p)
	s.finish(p)
}

func (s *Session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
