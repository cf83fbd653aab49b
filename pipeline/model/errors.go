package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

// The classes of errors of a call.
const (
	ClassRateLimit       = "rate_limit"        // retried
	ClassOverloaded      = "overloaded"        // retried
	ClassTimeout         = "timeout"           // retried: no complete reply in time
	ClassStalled         = "stalled"           // retried: a stream that fell silent
	ClassConnection      = "connection"        // retried; a stream that was cut too
	ClassServer          = "server"            // retried
	ClassMalformed       = "malformed"         // retried; a reply that makes no sense, or lost its calls
	ClassEmpty           = "empty"             // retried; a reply without text and calls. The last such reply is accepted
	ClassUnread          = "unread_tool_call"  // retried; the text has a call that could not be parsed
	ClassAuth            = "auth"              // fatal
	ClassQuota           = "quota"             // fatal
	ClassModelNotFound   = "model_not_found"   // fatal; a wrong base URL too
	ClassBadRequest      = "bad_request"       // this conversation or its settings are invalid
	ClassContextOverflow = "context_overflow"  // this conversation is too long
	ClassRequestTooLarge = "request_too_large" // this conversation is more than an account or a proxy lets through
	ClassReplyTooLarge   = "reply_too_large"   // this reply exceeds the limit of bytes
	ClassContentPolicy   = "content_policy"    // this conversation or its reply was refused
	ClassBudget          = "budget"            // fatal; nothing is left to pay for the call
	ClassCancelled       = "cancelled"         // the caller's context ended
)

// Error says why a call gave no reply. Unwrap returns the cause of a cancelled context, or the network's error.
type Error struct {
	Class      string
	Status     int    // of HTTP; 0 when there was no answer
	Message    string // one line, without secrets
	RetryAfter time.Duration
	Fatal      bool // stops the run: every other call would fail in the same way
	Tries

	cause  error
	paused bool // the request was not sent because of an outage
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("model call: ")
	b.WriteString(e.Class)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if len(e.Retries) > 0 {
		fmt.Fprintf(&b, " after %d tries", len(e.Retries)+1)
	}
	b.WriteString(": ")
	b.WriteString(e.Message)
	return b.String()
}

func (e *Error) Unwrap() error { return e.cause }

// Fault is the error as an episode keeps it.
func (e *Error) Fault() episode.Fault {
	return episode.Fault{Outcome: episode.ModelError, Class: e.Class, Message: e.Message}
}

// The causes with which the client itself cancels a try.
var (
	errTimeout = errors.New("no complete reply within the timeout")
	errIdle    = errors.New("the server sent nothing for the idle timeout")
)

// failure says why a try gave no reply. The caller's context is checked first, as its end can cause any other error.
func (d *doer) failure(ctx, try context.Context, x *exchange, err error) *Error {
	e := &Error{Status: x.status, RetryAfter: d.retryAfter(x.header)}
	switch cause := context.Cause(try); {
	case ctx.Err() != nil:
		e.cause = context.Cause(ctx)
		e.Class, e.Message = ClassCancelled, e.cause.Error()
	case cause == errTimeout:
		e.Class, e.Message = ClassTimeout, fmt.Sprintf("%v (%v)", cause, x.timeout)
	case cause == errLate:
		e.Class, e.Message, e.cause = ClassCancelled, cause.Error(), cause
	case cause == errIdle:
		e.Class, e.Message = ClassStalled, fmt.Sprintf("%v (%v)", cause, d.cfg.IdleTimeout)
	case x.status >= 300:
		said := parseProblem(x.raw.Bytes())
		for _, s := range servers {
			said.Type = cmp.Or(said.Type, x.header.Get(s.errorType))
		}
		e.Class, e.Message = classify(x.status, said)
		e.RetryAfter = cmp.Or(e.RetryAfter, said.wish(d.clock(x.header)))
		if location := x.header.Get("Location"); x.status < 400 && location != "" {
			e.Class, e.Message = ClassModelNotFound, "the server redirects to "+location+": put that into the base URL"
		}
	default:
		d.explain(e, x, err)
	}
	if e.RetryAfter == 0 && e.Class == ClassRateLimit {
		e.RetryAfter = resetAfter(x.header)
	}
	e.Fatal = policies[e.Class].fatal
	e.Message = oneLine(d.bad.text(e.Message))
	return e
}

// explain classifies errors of the network, and of replies that cannot be used.
func (d *doer) explain(e *Error, x *exchange, err error) {
	var refused *refusal
	var network net.Error
	switch {
	case errors.As(err, &refused):
		e.Class, e.Message = refused.class, refused.message
		e.RetryAfter = max(e.RetryAfter, refused.said.wish(d.clock(x.header)))
	case errors.As(err, &network) && network.Timeout():
		e.Class, e.Message, e.cause = ClassTimeout, err.Error(), err
	default:
		e.Class, e.Message, e.cause = ClassConnection, err.Error(), err
	}
}

// oneLine shortens a server's message for a log line and the journal.
func oneLine(s string) string { return lineOf(s, 600) }

// lineOf is a text in one line, cut to a number of bytes.
func lineOf(s string, longest int) string {
	start, cut := clip(strings.Join(strings.Fields(s), " "), longest)
	if cut {
		start += "..."
	}
	return start
}

// clip is the start of a text: UTF-8, cut between two characters.
func clip(s string, longest int) (start string, cut bool) {
	cut = len(s) > longest
	s = strings.ToValidUTF8(s[:min(len(s), longest+utf8.UTFMax)], "\uFFFD") // only the start needs to be checked
	if len(s) <= longest {
		return s, cut
	}
	end := longest
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end], true
}
