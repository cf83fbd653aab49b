package model

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// says has the words for what is wrong, in lower case, by class: those that several servers use, and each server's own. They
// mean the same whatever status they come with; where they do not, the status decides. A word that ends a run is narrow.
var says = words{
	ClassQuota:           {"insufficient_balance", "insufficient balance", "insufficient credits", "insufficient funds"},
	ClassContextOverflow: {"context_length_exceeded", "context length", "context window", "context size", "context limit", "prompt is too long"},
	// What an account or a proxy in front of the model does not let through, whatever the model takes.
	ClassRequestTooLarge: {"request too large", "request body too large", "payload too large", "entity too large"},
	ClassContentPolicy:   {"content_filter", "content_policy"},
	ClassAuth:            {"invalid_api_key", "authentication_error", "incorrect api key"},
	ClassRateLimit:       {"rate_limit", "rate limit", "ratelimit", "rate-limited", "too many requests", "too_many_requests"},
	ClassOverloaded:      {"overloaded", "capacity exceeded", "over capacity"},
}

// brokenOverflow is what llama.cpp says of a prompt that is too long, also with status 500.
const brokenOverflow = "exceed_context_size_error"

// noModel is how servers without a code for it say that they do not have the model. Only its name stands between: a tool
// that the model called may be what was not found.
var noModel = regexp.MustCompile("\\bmodels?[/:=\\s]+((id|name|named)[:=\\s]+)?([" + quotes + "]*[\\w./:@+-]+[" + quotes + "]*[:,]?\\s+)?((is |was |could |does )?not (be )?(found|exist)|doesn't exist)" +
	"|(no such|unknown) model")

const quotes = "\"'`\\\\" // and what escapes them

// echo is where validators repeat what they were sent: words of the conversation, which say nothing about the server.
var echo = regexp.MustCompile(`['"]input['"]:|input_value=`)

// classify reads an answer that is an error by its words and its status, or one that says so in a body with status 200.
func classify(status int, p problem) (class, message string) {
	message = cmp.Or(p.Message, http.StatusText(status))
	said := p.Message
	if at := echo.FindStringIndex(said); at != nil {
		said = said[:at[0]]
	}
	text := strings.ToLower(strings.Join([]string{p.Code, p.Type, p.State, said}, " "))
	has := func(class string) bool {
		return slices.ContainsFunc(says[class], func(s string) bool { return strings.Contains(text, s) })
	}
	if status < 300 { // OpenRouter and others put the status into the error's code
		if n := p.status(); n != 0 {
			status = n
		}
	}
	// A server that is broken may say anything: its words count only where they are a name for just that.
	broken := status >= 500
	switch {
	// Gemini words its rate limit "exceeded your current quota", so only codes and unmistakable words count here.
	case status == http.StatusPaymentRequired, has(ClassQuota) && !broken:
		return ClassQuota, message
	case has(ClassContextOverflow) && (!broken || strings.Contains(text, brokenOverflow)):
		return ClassContextOverflow, message
	case status == http.StatusRequestEntityTooLarge, has(ClassRequestTooLarge) && !broken:
		return ClassRequestTooLarge, message
	case has(ClassContentPolicy) && !broken:
		return ClassContentPolicy, message
	case has(ClassMalformed):
		return ClassMalformed, message
	case has(ClassRateLimit) && (status == http.StatusForbidden || !broken && status != http.StatusUnauthorized), status == http.StatusTooManyRequests:
		return ClassRateLimit, message
	case status == http.StatusUnauthorized, status == http.StatusForbidden, has(ClassAuth) && !broken:
		return ClassAuth, message
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, strings.Contains(text, "model_not_found"),
		!broken && (has(ClassModelNotFound) || noModel.MatchString(text)):
		return ClassModelNotFound, message
	case status == http.StatusServiceUnavailable, status == 529, status == 498, has(ClassOverloaded):
		return ClassOverloaded, message
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout, status == 524:
		return ClassTimeout, message
	case broken, status < 300, status == http.StatusFailedDependency: // Bedrock's name for a model that failed
		return ClassServer, message
	}
	return ClassBadRequest, message
}

// retryIn finds how long to wait in the words of a server that has no header for it.
var retryIn = regexp.MustCompile(`(?i)\b(?:retry|try again) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+|\d+(?:\.\d+)?\s*seconds?)`)

// wish is how long the server wants to be left alone, as far as the body tells. date is the server's clock.
func (p problem) wish(date string) time.Duration {
	text := p.RetryDelay
	if text == "" {
		found := retryIn.FindStringSubmatch(p.Message)
		if found == nil {
			left, _ := resetTime(p.Reset, date)
			return left
		}
		text = found[1]
	}
	if number, unit := strings.CutSuffix(strings.TrimSuffix(text, "s"), "second"); unit {
		text = strings.TrimSpace(number) + "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0
	}
	return d
}
