package model

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"trajgen/pipeline/model/gate"
)

// headerBudget reads what is left of a limit from a reply's headers: X-Ratelimit-Remaining-Requests and its like, as
// OpenAI and many others send them, and Anthropic-Ratelimit-Requests-Remaining. other is a second name of the same limit.
func headerBudget(h http.Header, name, other string) gate.Budget {
	if !tellsLimits(h) {
		return gate.Budget{} // as most self-hosted servers
	}
	kinds := []string{name}
	if other != "" {
		kinds = append(kinds, other)
	}
	for _, kind := range kinds {
		for _, field := range []func(string) string{
			func(what string) string { return h.Get("X-Ratelimit-" + what + "-" + kind) },
			func(what string) string { return h.Get("Anthropic-Ratelimit-" + kind + "-" + what) },
		} {
			if b, ok := readBudget(h, field); ok {
				return b
			}
		}
	}
	if name == "Requests" { // OpenRouter and the IETF's draft have names without a kind
		for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
			if b, ok := readBudget(h, func(what string) string { return h.Get(prefix + what) }); ok {
				return b
			}
		}
	}
	return gate.Budget{}
}

func tellsLimits(h http.Header) bool {
	for name := range h {
		if strings.Contains(name, "Ratelimit-") {
			return true
		}
	}
	return false
}

// resetAfter is the time until an exhausted limit resets, according to the headers.
func resetAfter(h http.Header) time.Duration {
	var longest time.Duration
	for _, b := range []gate.Budget{headerBudget(h, "Requests", ""), headerBudget(h, "Tokens", "Input-Tokens")} {
		if b.Limit > 0 && b.Remaining < 1 {
			longest = max(longest, b.Reset)
		}
	}
	return longest
}

// readBudget reads the three headers of one limit. All of them must make sense.
func readBudget(h http.Header, field func(string) string) (gate.Budget, bool) {
	limit, okLimit := amount(field("Limit"))
	if !okLimit {
		return gate.Budget{}, false // the usual case
	}
	remaining, okRemaining := amount(field("Remaining"))
	reset, okReset := resetTime(field("Reset"), h.Get("Date"))
	if !okRemaining || !okReset || limit <= 0 || remaining < 0 || remaining > limit {
		return gate.Budget{}, false
	}
	return gate.Budget{Limit: limit, Remaining: remaining, Reset: reset}, true
}

func amount(text string) (float64, bool) {
	text, _, _ = strings.Cut(text, ",") // "100, 100;w=60"
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n, err == nil && n >= 0 && n < 1e15
}

// resetTime reads the time until a reset: "1m30.5s", a number of seconds, a date, or a Unix time in seconds or milliseconds.
// date is the server's clock, which the last two need.
func resetTime(text, date string) (time.Duration, bool) {
	const year = 365 * 24 * time.Hour
	text = strings.TrimSpace(text)
	if d, err := time.ParseDuration(text); err == nil {
		return d, d >= 0 && d < year
	}
	now, noClock := http.ParseTime(date)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		n, ok := amount(text)
		switch {
		case !ok:
			return 0, false
		case n < year.Seconds():
			return seconds(n), true
		case n > 1e11:
			at = time.UnixMilli(int64(n))
		default:
			at = time.Unix(int64(n), 0)
		}
	}
	left := at.Sub(now)
	return max(left, 0), noClock == nil && left < year
}
