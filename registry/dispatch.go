package registry

import (
	"cmp"
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
	p.run(ctx)
	if req.Parent == "" {
		s.endTurn(ctx, p)
	}
	return p.call
}

// prepared is a call from its request to its place in the trace.
type prepared struct {
	session *Session
	call    episode.ToolCall
	tool    *Tool
	args    arguments
	refused *Failure
	failure string    // the model's error message for a call that failed
	first   *prepared // the same call earlier in the turn, whose result this one shares
	env     Env
	meter   meter
	twin    TwinAnswer // nil where the tool answers itself
	place   episode.Place
	fault   *Fault   // nil without one
	crossed *crossed // nil unless its result is exchanged with another one

	done  bool        // guarded by trace.mu; from then on call is, too
	inner []*prepared // guarded by trace.mu
}

// prepare finds the tool and its arguments, or the reason to refuse the call.
func (s *Session) prepare(req Request) *prepared {
	p := &prepared{session: s, call: episode.ToolCall{
		ID: req.ID, Parent: req.Parent, Turn: req.Turn, Index: req.Index, Name: req.Name, RawArguments: req.Arguments,
	}}
	p.meter.now = s.cfg.Now
	p.env = Env{
		Session: s, CallID: req.ID, Parent: req.Parent, Turn: req.Turn, Index: req.Index, Logger: s.cfg.Logger, meter: &p.meter,
	}
	s.reserve(p)
	if !req.Cut { // the meaning of a cut call is unknown
		if p.unwrap(); p.refused != nil {
			return p
		}
	}
	asked := p.call.Name
	name, tool, missing := s.tools.lookup(asked)
	why := s.tools.missing[name]
	if p.call.Toolset = why.toolset; tool != nil {
		p.call.Toolset = tool.Toolset
	}
	if name != asked {
		// The trace has no field for this, and the message keeps the name as the model wrote it.
		p.call.Name = name
		p.call.Coerced = append(p.call.Coerced, "name:"+asked)
	}
	switch {
	case missing:
		p.refused = &Failure{
			Class: "unavailable", Status: episode.CallUnavailable,
			Message: fmt.Sprintf("tool %q is not available: %s", name, why.reason),
		}
	case tool == nil:
		p.refused = s.tools.unknown(asked)
	case req.Cut:
		p.refused = tool.invalid([]problem{{Field: "arguments", Expected: "a JSON object", Got: "text that ends too early: " + shorten(req.Arguments, 80)}})
	default:
		p.tool = tool
		p.read(tool, p.call.RawArguments, tool.implied(asked)...)
		faulted{p}.plant(tool)
		p.begin()
	}
	return p
}

// read takes the arguments for the call.
func (p *prepared) read(tool *Tool, text string, implied ...member) {
	p.args = p.parse(tool, text, implied...)
	p.call.Arguments, p.call.Repaired = p.args.shown, p.args.repaired || p.call.Repaired
	p.call.Coerced = append(p.call.Coerced, p.args.coerced...)
}

// implied are the arguments that a call says by the name of an earlier tool.
func (t *Tool) implied(asked string) (says []member) {
	if len(t.Aliases) == 0 {
		return nil
	}
	for _, alias := range sortedKeys(t.Aliases) {
		if bare(alias) == bare(asked) {
			for _, key := range sortedKeys(t.Aliases[alias]) {
				says = append(says, member{key, quote(key), value{kind: kindString, text: quote(t.Aliases[alias][key])}})
			}
		}
	}
	return says
}

// parse reads the arguments, or refuses the call. The model need not write those that are implied.
func (p *prepared) parse(tool *Tool, text string, implied ...member) (args arguments) {
	err := attempt(func() error { // a library may panic on hostile arguments
		var problems []problem
		if args, problems = tool.plan().parse(text, implied...); problems != nil {
			p.refused = tool.invalid(problems)
		}
		return nil
	})
	if err != nil {
		p.bug("panic", err)
		p.refused = &Failure{Class: "panic", Message: sanitise(tool.Name + ": the arguments could not be read")}
	}
	return args
}

func (t *Toolset) unknown(name string) *Failure {
	have, meant := cmp.Or(strings.Join(t.names, ", "), "none"), ""
	if like := suggestion(name, t.names); like != "" {
		meant = " (did you mean " + quote(like) + "?)"
	}
	return &Failure{
		Class: "unknown_tool", Status: episode.CallUnknownTool,
		Message: fmt.Sprintf("tool %s does not exist%s; available tools: %s", quote(shorten(name, 100)), meant, have),
	}
}

// run runs a prepared call and completes its trace.
func (p *prepared) run(ctx context.Context) {
	s := p.session
	p.call.Started = s.cfg.Now()
	var text string
	var err error
	switch {
	case p.refused != nil:
		err = p.refused
	case s.isClosed():
		err = Failf("closed", "the episode has ended")
	case ctx.Err() != nil:
		err = Failf("skipped", "skipped: %v", context.Cause(ctx))
	default:
		if err = p.before(ctx); err == nil {
			text, err = faulted{p}.answer(ctx)
			p.call.Untrusted, p.call.Runner = p.tool.Untrusted, p.tool.Runner
		}
	}
	p.settle(ctx, text, err)
	faulted{p}.record()
	p.call.Result = p.mask(p.call.Result)
	p.fit(ctx)
	p.call.Elapsed = s.cfg.Now().Sub(p.call.Started)
	s.finish(p)
}
