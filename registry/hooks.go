package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"trajgen/pipeline/episode"
)

// Hook takes part in the calls of a session, nested ones too. Hooks run on the goroutine of the call, in the order of
// SessionConfig.Hooks, and calls of one turn may run at the same time. A panic in one is a bug: the call fails and the
// episode ends with a tool_error.
type Hook struct {
	Name string
	// Before is called when the arguments fit the schema, before the tool runs and outside of its deadline. It may replace
	// call.Arguments (which are then checked again, and recorded as rewritten by the hook), add to call.Trace, or refuse with an
	// error: the model gets a *Failure, and any other error is not the agent's doing and ends the episode with a tool_error.
	Before func(ctx context.Context, env *Env, call *Pending) error
}

// Pending is a call that is about to run.
type Pending struct {
	Tool Tool
	// Arguments are those that the tool would get: repaired, coerced, with defaults.
	Arguments json.RawMessage
	// Trace is the call's record so far. It belongs to the hook until Before returns.
	Trace *episode.ToolCall
}

// errHook is the error of a hook that failed, and did not refuse the call.
type errHook struct {
	hook  string
	cause error
}

func (e *errHook) Error() string { return fmt.Sprintf("hook %s: %v", e.hook, e.cause) }
func (e *errHook) Unwrap() error { return e.cause }

// before calls the hooks. It returns the error that refuses the call.
func (p *prepared) before(ctx context.Context) error {
	for _, hook := range p.session.cfg.Hooks {
		pending := Pending{Tool: *p.tool, Arguments: p.args.given, Trace: &p.call}
		if err := attempt(func() error { return hook.Before(ctx, &p.env, &pending) }); err != nil {
			if _, crashed := errors.AsType[*crash](err); !crashed && (isFailure(err) || ctx.Err() != nil) {
				return err
			}
			return &errHook{hook.Name, err}
		}
		if string(pending.Arguments) == string(p.args.given) {
			continue
		}
		if err := p.rewrite(hook.Name, pending.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// rewrite takes a hook's arguments. The raw text stays the model's.
func (p *prepared) rewrite(hook string, arguments json.RawMessage) error {
	if err := syntax(string(arguments)); err != nil {
		return &errHook{hook, fmt.Errorf("arguments that are not JSON: %w", err)}
	}
	args, problems := p.tool.plan().fit(parseValue(string(arguments)), len(arguments), nil)
	p.call.Rewritten = append(p.call.Rewritten, hook)
	if problems != nil {
		return p.tool.invalid(problems)
	}
	p.args.given, p.call.Arguments = args.given, args.shown
	return nil
}

// endTurn does the work that needs all calls of a turn to have ended: results that a planted fault exchanges, the limit on
// all results together, and the notices.
func (s *Session) endTurn(ctx context.Context, calls ...*prepared) {
	cross(calls)
	s.fitTurn(ctx, calls)
	if s.cfg.Guardrails != nil {
		s.cfg.Guardrails.turn(calls)
	}
}
