package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// settle turns what became of a call into status, class and result, and into the session's fault if it is not the agent's doing.
func (p *prepared) settle(ctx context.Context, text string, err error) {
	f := p.explain(ctx, err)
	if f == nil {
		p.call.Status, p.call.Result = episode.CallOK, text
		return
	}
	p.call.Status, p.call.ErrorClass = cmp.Or(f.Status, episode.CallError), cmp.Or(f.Class, "error")
	if text, err = f.text(); err != nil {
		p.bug("bad_result", err)
		text, _ = (&Failure{Message: f.Message}).text()
	}
	p.call.Result, p.failure = text, p.mask(f.Message)
}

// explain is the error message for the model, by precedence: a reason to refuse the call, a bug in a hook or a tool, the end of the
// episode, a lost sandbox, the tool's own Failure, the deadline, any other error.
func (p *prepared) explain(ctx context.Context, err error) *Failure {
	broken, hooked := errors.AsType[*errHook](err)
	_, crashed := errors.AsType[*crash](err)
	_, unencoded := errors.AsType[*malformed](err)
	_, closed := errors.AsType[*unopened](err)
	f, failed := errors.AsType[*Failure](err)
	switch {
	case err == nil:
		return nil
	case p.refused != nil:
		return p.refused
	case hooked:
		p.bug("hook", broken)
		return &Failure{Class: "hook", Message: p.call.Name + ": the harness failed"}
	case crashed:
		p.bug("panic", err)
		return p.unexpected("panic", err)
	case unencoded:
		p.bug("bad_result", err)
		return &Failure{Class: "bad_result", Message: sanitise(p.call.Name + ": the result could not be written as JSON")}
	case ctx.Err() != nil && !failed:
		return &Failure{Class: "cancelled", Message: "the call was cancelled: " + context.Cause(ctx).Error()}
	case errors.Is(err, sandbox.ErrGone):
		p.session.setFault(episode.SandboxError, "gone", err.Error())
		return &Failure{Class: "sandbox_gone", Message: "the sandbox was lost"}
	case closed:
		return &Failure{Class: "sandbox_open", Message: "the sandbox could not be opened"}
	case errors.Is(err, errStuck):
		p.bug("stuck_tool", fmt.Errorf("%s: %w", p.call.Name, errStuck))
		return p.tool.late("stuck_tool")
	case failed && f.Broken:
		p.bug(f.Class, f)
	}
	return p.told(err)
}

func (t *Tool) late(class string) *Failure {
	return &Failure{
		Class: class, Status: episode.CallTimeout,
		Message: fmt.Sprintf("%s did not finish within %s", t.Name, t.timeout()),
	}
}

// unexpected is the message for the model of an error that is not a Failure. It masks secrets before it cuts the text, as half a
// secret would not be found.
func (p *prepared) unexpected(class string, err error) *Failure {
	return &Failure{Class: class, Message: sanitise(p.mask(p.call.Name + ": " + err.Error()))}
}

// mask replaces the secrets in a result, and records their names in the trace.
func (p *prepared) mask(text string) string {
	text, found := p.session.cfg.Secrets.mask(text)
	if found != nil {
		found = append(found, p.call.Masked...)
		slices.Sort(found)
		p.call.Masked = slices.Compact(found)
	}
	return text
}

// bug records a bug in our source.
func (p *prepared) bug(class string, err error) {
	s := p.session
	message, _ := s.cfg.Secrets.mask(err.Error())
	stack := ""
	if crashed, ok := errors.AsType[*crash](err); ok {
		stack = crashed.stack
	}
	s.cfg.Logger.Error("tool is broken", "tool", p.call.Name, "call", p.call.ID, "class", class, "error", message, "stack", stack)
	s.setFault(episode.ToolError, class, p.call.Name+": "+message)
}
