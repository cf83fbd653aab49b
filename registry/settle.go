package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// settle turns the outcome of a call into status, class and result text, and into the session's fault if it is not the agent's
// doing.
func (s *Session) settle(ctx context.Context, p *prepared, o *outcome) {
	f := s.failure(ctx, p, o)
	if f == nil {
		p.call.Status = episode.CallOK
		return
	}
	p.call.Status, p.call.ErrorClass = f.Status, f.Class
	if f.Status == "" {
		p.call.Status = episode.CallError
	}
	if f.Class == "" {
		p.call.ErrorClass = "error"
	}
	text, err := f.text()
	if err != nil {
		s.bug(p, "bad_result", err.Error(), "")
		text, _ = (&Failure{Message: f.Message}).text()
	}
	o.text = text
	p.failure = s.mask(p, f.Message)
}

// failure is the error message for the model, by precedence: a bug in a tool, the end of the episode, a lost sandbox, the tool's
// own Failure, the deadline, any other error.
func (s *Session) failure(ctx context.Context, p *prepared, o *outcome) *Failure {
	if o.panicked != nil {
		message := fmt.Sprint(o.panicked)
		s.bug(p, "panic", message, o.stack)
		return s.unexpected(p, "panic", message)
	}
	if o.err == nil {
		return nil
	}
	if o.malformed {
		s.bug(p, "bad_result", o.err.Error(), "")
		return &Failure{Class: "bad_result", Message: sanitise(p.call.Name + ": the result could not be written as JSON")}
	}
	_, closed := errors.AsType[*unopened](o.err)
	f, failed := errors.AsType[*Failure](o.err)
	broken, hooked := errors.AsType[*errHook](o.err)
	wrong, undecoded := errors.AsType[*undecodable](o.err)
	switch {
	case p.refused != nil:
		return p.refused
	case hooked:
		s.broken(p, broken.hook, broken)
		return &Failure{Class: "hook", Message: p.call.Name + ": the harness failed"}
	case ctx.Err() != nil && !failed:
		return &Failure{Class: "cancelled", Message: "the call was cancelled: " + context.Cause(ctx).Error()}
	case errors.Is(o.err, sandbox.ErrGone):
		s.setFault(episode.SandboxError, "gone", o.err.Error())
		return &Failure{Class: "sandbox_gone", Message: "the sandbox was lost"}
	case closed:
		return &Failure{Class: "sandbox_open", Message: "the sandbox could not be opened"}
	case errors.Is(o.err, errStuck):
		s.bug(p, "stuck_tool", p.call.Name+": "+errStuck.Error(), "")
		return &Failure{Class: "stuck_tool", Status: episode.CallTimeout, Message: p.timeout()}
	case failed:
		if f.Broken {
			s.bug(p, f.Class, f.Message, "")
		}
		return f
	case undecoded:
		return p.tool.invalid([]problem{wrong.problem()})
	case errors.Is(o.err, errDeadline) || errors.Is(o.err, context.DeadlineExceeded):
		return &Failure{Class: "timeout", Status: episode.CallTimeout, Message: p.timeout()}
	}
	return s.unexpected(p, "error", o.err.Error())
}

// unexpected is the message for the model of an error that is not a Failure. It masks secrets before it cuts the text, as half a
// secret would not be found.
func (s *Session) unexpected(p *prepared, class, message string) *Failure {
	return &Failure{Class: class, Message: sanitise(s.mask(p, p.call.Name+": "+message))}
}

// mask replaces the secrets in a result, and records their names in the trace.
func (s *Session) mask(p *prepared, text string) string {
	text, found := s.cfg.Secrets.mask(text)
	if found != nil {
		found = append(found, p.call.Masked...)
		slices.Sort(found)
		p.call.Masked = slices.Compact(found)
	}
	return text
}

func (p *prepared) timeout() string {
	limit := p.tool.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	return fmt.Sprintf("%s did not finish within %s", p.call.Name, limit)
}

// bug records a bug in our source.
func (s *Session) bug(p *prepared, class, message, stack string) {
	message, _ = s.cfg.Secrets.mask(message)
	s.cfg.Logger.Error("tool is broken", "tool", p.call.Name, "call", p.call.ID, "class", class, "error", message, "stack", stack)
	s.setFault(episode.ToolError, class, p.call.Name+": "+message)
}
