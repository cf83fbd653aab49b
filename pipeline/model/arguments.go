package model

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// unreadable is the member that holds arguments which are no JSON object, so that the model still sees what it wrote.
const unreadable = "invalid_arguments"

// SentArguments returns what a request sends in place of an earlier call's arguments, as servers refuse every request with
// arguments that they cannot parse; "" sends the arguments themselves. ran is the repaired object that the call ran with, if
// any. Without it, the result is an object with the text as a member.
func SentArguments(arguments string, ran json.RawMessage) string {
	switch {
	case readable(arguments):
		return ""
	case strings.TrimSpace(arguments) == "":
		return "{}"
	case readable(string(ran)):
		return string(ran)
	}
	if mended := halves.ReplaceAllStringFunc(arguments, mendHalf); readable(mended) {
		return mended
	}
	return `{"` + unreadable + `":` + string(episode.MustJSON(arguments)) + "}"
}

// The strictest limits of the parsers that servers use: Rust's nest 128 levels deep, Go's and llama.cpp's refuse numbers
// outside a float64, and Python's loads half of a surrogate pair, which the tokenizer then refuses.
const deepestArguments = 100

// readable reports whether arguments are an object that every server can parse.
func readable(arguments string) bool {
	if !strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") || !json.Valid([]byte(arguments)) || halved(arguments) {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.UseNumber()
	for depth := 0; ; {
		token, err := decoder.Token()
		if err != nil { // the end, as it is valid
			return true
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '}' || token == ']' {
				depth--
			} else if depth++; depth > deepestArguments {
				return false
			}
		case json.Number:
			if _, err := token.Float64(); err != nil {
				return false
			}
		}
	}
}

// halves finds escapes of surrogates, alone or in pairs, and skips other escapes such as \\.
var halves = regexp.MustCompile(`(?i)\\u(d[89ab][0-9a-f]{2}(\\ud[c-f][0-9a-f]{2})?|d[c-f][0-9a-f]{2})|\\[^u]`)

// mendHalf replaces half a pair by the replacement character, as tolerant parsers do.
func mendHalf(escape string) string {
	if len(escape) != len(`\ud800`) {
		return escape
	}
	return `\ufffd`
}

// halved reports whether JSON has half of a surrogate pair in a string.
func halved(text string) bool {
	if !strings.Contains(text, `\u`) {
		return false
	}
	return slices.ContainsFunc(halves.FindAllString(text, -1), func(escape string) bool { return mendHalf(escape) != escape })
}
