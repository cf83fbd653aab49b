package model

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// How servers say what is wrong, in lower case. The same words mean the same to most, whatever status they come with;
// where they do not, the status decides. A word that ends a run is narrow.
var (
	noCredit = []string{
		"insufficient_quota", "insufficient_balance", "insufficient balance", "insufficient credits", "insufficient funds",
		"billing_hard_limit", "billing_not_active", "credit balance is too low", "exceeded_current_quota_error",
		"budget_exceeded", "budget has been exceeded", "exceeded budget", "exceededbudget", "monthly spending limit", "requires more credits",
		"reached your specified api usage limit", "reached your specified workspace api usage limit",
	}
	tooLong = []string{
		"context_length_exceeded", "exceed_context_size_error", "contextwindowexceedederror", "context length", "context window",
		"context size", "context limit", "context the overflows", "maximum model length", "prompt is too long", "input is too long",
		"max_tokens must be at least 1, got -", "exceeds the maximum allowed length", "`inputs` tokens + `max_new_tokens` must be",
		"input token count exceeds", "too large for model with",
	}
	// What an account or a proxy in front of the model does not let through, whatever the model takes.
	tooLarge = []string{
		"request too large", "request_too_large", "request body too large", "tokens_limit_reached", "payload too large", "entity too large",
		"required for long context requests",
	}
	filtered   = []string{"content_filter", "content_policy", "content management policy", "responsibleaipolicyviolation", "was flagged", "moderation", "data_inspection_failed", "prohibited_content"}
	noKey      = []string{"invalid_api_key", "authentication_error", "incorrect api key", "api key not valid", "invalid subscription key"}
	tooFast    = []string{"rate_limit", "rate limit", "ratelimit", "rate-limited", "too many requests", "too_many_requests", "resource_exhausted", "throttlingexception", "please wait before trying again"}
	overloaded = []string{"overloaded", "server busy", "no slots available", "capacity exceeded", "over capacity"}
	// Groq's name for a call that the model wrote so badly that the server could not read it.
	badReply = []string{"tool_use_failed"}
	// noModel is how servers without a code for it say that they do not have the model. Only its name stands between: a tool
	// that the model called may be what was not found.
	noModel = regexp.MustCompile("\\bmodels?[/:=\\s]+((id|name|named)[:=\\s]+)?([" + quotes + "]*[\\w./:@+-]+[" + quotes + "]*[:,]?\\s+)?((is |was |could |does )?not (be )?(found|exist)|doesn't exist)" +
		"|(no such|unknown) model|invalid model name passed|provided model identifier is invalid|deploymentnotfound")
)

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
	words := strings.ToLower(strings.Join([]string{p.Code, p.Type, p.State, said}, " "))
	has := func(any []string) bool {
		return slices.ContainsFunc(any, func(s string) bool { return strings.Contains(words, s) })
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
	case status == http.StatusPaymentRequired, has(noCredit) && !broken:
		return ClassQuota, message
	case has(tooLong) && (!broken || strings.Contains(words, "exceed_context_size_error")):
		return ClassContextOverflow, message
	case status == http.StatusRequestEntityTooLarge, has(tooLarge) && !broken:
		return ClassRequestTooLarge, message
	case has(filtered) && !broken:
		return ClassContentPolicy, message
	case has(badReply):
		return ClassMalformed, message
	case has(tooFast) && (status == http.StatusForbidden || !broken && status != http.StatusUnauthorized), status == http.StatusTooManyRequests:
		return ClassRateLimit, message
	case status == http.StatusUnauthorized, status == http.StatusForbidden, has(noKey) && !broken:
		return ClassAuth, message
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, strings.Contains(words, "model_not_found"),
		!broken && noModel.MatchString(words):
		return ClassModelNotFound, message
	case status == http.StatusServiceUnavailable, status == 529, status == 498, has(overloaded):
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
