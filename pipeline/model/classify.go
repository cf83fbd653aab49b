package model

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// says has the words in errors, in lower case, by class: those that several servers use, and each server's own. They decide
// the class before the status, unless classify says otherwise. Words of a class that ends the run must be unmistakable.
var says = words{
	ClassQuota:           {"insufficient_balance", "insufficient balance", "insufficient credits", "insufficient funds"},
	ClassContextOverflow: {"context_length_exceeded", "context length", "context window", "context size", "context limit", "prompt is too long"},
	// A limit of the account or of a proxy in front of the model, not of the model.
	ClassRequestTooLarge: {"request too large", "request body too large", "payload too large", "entity too large"},
	ClassContentPolicy:   {"content_filter", "content_policy"},
	ClassAuth:            {"invalid_api_key", "authentication_error", "incorrect api key"},
	ClassRateLimit:       {"rate_limit", "rate limit", "ratelimit", "rate-limited", "too many requests", "too_many_requests"},
	ClassOverloaded:      {"overloaded", "capacity exceeded", "over capacity"},
}

// brokenOverflow is llama.cpp's word for a prompt that is too long, also with status 500.
const brokenOverflow = "exceed_context_size_error"

// noModel finds the ways in which servers without a code for it say that they do not have the model. Only a name may stand
// between "model" and "not found", as the message may be about a tool that was not found.
var noModel = regexp.MustCompile("\\bmodels?[/:=\\s]+((id|name|named)[:=\\s]+)?([" + quotes + "]*[\\w./:@+-]+[" + quotes + "]*[:,]?\\s+)?((is |was |could |does )?not (be )?(found|exist)|doesn't exist)" +
	"|(no such|unknown) model")

const quotes = "\"'`\\\\" // and what escapes them

// echo finds where validators repeat their input: what follows are words of the conversation, not of the server.
var echo = regexp.MustCompile(`['"]input['"]:|input_value=`)

// classify finds the class of an error by its words and its status. The status may be 200 with an error in the body.
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
	// A broken server may say anything, so with a status of 500 and above only unmistakable words count.
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

// retryIn finds how long to wait in the message of a server that has no header for it.
var retryIn = regexp.MustCompile(`(?i)\b(?:retry|try again) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+|\d+(?:\.\d+)?\s*seconds?)`)

// wish is the pause that the server asks for in the body. date is the server's clock.
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
