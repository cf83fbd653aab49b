package model

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"trajgen/pipeline/model/gate"
)

// requestHeaders and tokenHeaders are the headers of limits, with a place for Limit, Remaining and Reset. OpenAI and many others
// send the first; OpenRouter and the IETF's draft have names without a kind.
var (
	requestHeaders = []string{"X-Ratelimit-%s-Requests", "Anthropic-Ratelimit-Requests-%s", "X-Ratelimit-%s", "Ratelimit-%s"}
	tokenHeaders   = []string{
		"X-Ratelimit-%s-Tokens", "Anthropic-Ratelimit-Tokens-%s",
		"X-Ratelimit-%s-Input-Tokens", "Anthropic-Ratelimit-Input-Tokens-%s",
	}
)

// headerBudget reads what is left of a limit from the first of the headers that a reply has.
func headerBudget(h http.Header, names []string) gate.Budget {
	for _, name := range names {
		if b, ok := readBudget(h, name); ok {
			return b
		}
	}
	return gate.Budget{}
}

// resetAfter is the time until an exhausted limit resets, according to the headers.
func resetAfter(h http.Header) time.Duration {
	var longest time.Duration
	for _, b := range []gate.Budget{headerBudget(h, requestHeaders), headerBudget(h, tokenHeaders)} {
		if b.Limit > 0 && b.Remaining < 1 {
			longest = max(longest, b.Reset)
		}
	}
	return longest
}

// readBudget reads the three headers of one limit. All of them must make sense.
func readBudget(h http.Header, name string) (gate.Budget, bool) {
	field := func(what string) string { return h.Get(fmt.Sprintf(name, what)) }
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
