package model

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"trajgen/pipeline/episode"
)

// The classes of errors: what a call can die of.
const (
	ClassRateLimit       = "rate_limit"       // retried
	ClassOverloaded      = "overloaded"       // retried
	ClassTimeout         = "timeout"          // retried; a stalled stream too
	ClassConnection      = "connection"       // retried; a stream that was cut too
	ClassServer          = "server"           // retried
	ClassMalformed       = "malformed"        // retried; a reply that makes no sense
	ClassAuth            = "auth"             // fatal
	ClassQuota           = "quota"            // fatal
	ClassModelNotFound   = "model_not_found"  // fatal; a wrong base URL too
	ClassBadRequest      = "bad_request"      // this conversation or its settings
	ClassContextOverflow = "context_overflow" // this conversation is too long
	ClassContentPolicy   = "content_policy"   // this conversation or its reply was refused
	ClassCancelled       = "cancelled"        // the caller's context ended
)

// Error is why a call gave no reply. Unwrap gives the cause of a cancelled context, or the network's error.
type Error struct {
	Class      string
	Status     int    // of HTTP; 0 when there was no answer
	Message    string // one line, without secrets
	RetryAfter time.Duration
	Fatal      bool // the whole run cannot go on: every other call would end like this one
	RequestID  string
	Retries    []episode.Fault // what the tries before the last one died of

	cause error
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

// retryable tells whether the same request may fare better later.
func (e *Error) retryable() bool {
	switch e.Class {
	case ClassRateLimit, ClassOverloaded, ClassTimeout, ClassConnection, ClassServer, ClassMalformed:
		return true
	}
	return false
}

// The causes with which a try is ended from inside.
var (
	errTimeout = errors.New("no complete reply within the timeout")
	errIdle    = errors.New("the server sent nothing for the idle timeout")
)

// failure says why a try gave no reply. The caller's context comes first, as its end makes every other symptom.
func (c *Client) failure(ctx, try context.Context, x *exchange, err error) *Error {
	e := &Error{Status: x.status, RetryAfter: c.retryAfter(x.header), RequestID: c.redact.Replace(requestID(x.header))}
	switch cause := context.Cause(try); {
	case ctx.Err() != nil:
		e.cause = context.Cause(ctx)
		e.Class, e.Message = ClassCancelled, e.cause.Error()
	case cause == errTimeout:
		e.Class, e.Message = ClassTimeout, fmt.Sprintf("%v (%v)", cause, c.cfg.Timeout)
	case cause == errIdle:
		e.Class, e.Message = ClassTimeout, fmt.Sprintf("%v (%v)", cause, c.cfg.IdleTimeout)
	case x.status >= 300:
		e.Class, e.Message = classify(x.status, parseProblem(x.raw.Bytes()))
		if location := x.header.Get("Location"); x.status < 400 && location != "" {
			e.Class, e.Message = ClassModelNotFound, "the server redirects to "+location+": put that into the base URL"
		}
	default:
		c.explain(e, err)
	}
	e.Fatal = e.Class == ClassAuth || e.Class == ClassQuota || e.Class == ClassModelNotFound
	e.Message = oneLine(c.redact.Replace(e.Message))
	return e
}

// explain classifies what went wrong below or above HTTP.
func (c *Client) explain(e *Error, err error) {
	var refused *refusal
	var network net.Error
	switch {
	case errors.As(err, &refused):
		e.Class, e.Message = refused.class, refused.message
	case errors.As(err, &network) && network.Timeout():
		e.Class, e.Message, e.cause = ClassTimeout, err.Error(), err
	default:
		e.Class, e.Message, e.cause = ClassConnection, err.Error(), err
	}
}

// noModel is how servers without a code for it say that they do not have the model. It ends the run, so it is narrow.
var noModel = regexp.MustCompile(`\bmodel\b[^.]{0,200}(does not exist|not found)|(no such|unknown) model`)

// classify reads an answer that is an error by its status, or one that says so in a body with status 200.
func classify(status int, p problem) (class, message string) {
	message = p.Message
	if message == "" {
		message = http.StatusText(status)
	}
	words := strings.ToLower(p.Code + " " + p.Type + " " + p.Message)
	has := func(any ...string) bool {
		for _, s := range any {
			if strings.Contains(words, s) {
				return true
			}
		}
		return false
	}
	if status < 300 { // OpenRouter and others put the status into the error's code
		if n := p.status(); n != 0 {
			status = n
		}
	}
	switch {
	// Gemini words its rate limit "exceeded your current quota", so only codes and unmistakable words count here.
	case status == 402, has("insufficient_quota", "insufficient_balance", "insufficient balance", "insufficient credits",
		"billing_hard_limit", "billing_not_active"):
		return ClassQuota, message
	case status == 413, has("context_length_exceeded", "maximum context length", "context length", "context window",
		"available context size", "prompt is too long", "input is too long") && status < 500:
		return ClassContextOverflow, message
	case has("content_filter", "content_policy", "content management policy", "was flagged", "moderation") && status < 500:
		return ClassContentPolicy, message
	case status == 401, status == 403, has("invalid_api_key", "authentication_error"):
		return ClassAuth, message
	case status == 404, status == 405, has("model_not_found"),
		status < 500 && noModel.MatchString(words):
		return ClassModelNotFound, message
	case status == 429, has("rate_limit", "rate limit", "too many requests") && status < 500:
		return ClassRateLimit, message
	case status == 503, status == 529, has("overloaded"):
		return ClassOverloaded, message
	case status == 408, status == 504, status == 524:
		return ClassTimeout, message
	case status >= 500, status < 300:
		return ClassServer, message
	default:
		return ClassBadRequest, message
	}
}

// oneLine makes a message of a stranger fit for a log line and a journal.
func oneLine(s string) string {
	const longest = 600
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "..."
	}
	return s
}
