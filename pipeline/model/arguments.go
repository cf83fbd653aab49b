package model

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
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
	return `{"` + unreadable + `":` + string(quote(arguments)) + "}"
}

// The strictest limits of the parsers that servers use: Rust's nest 128 levels deep, Go's and llama.cpp's refuse numbers
// outside a float64, and Python's loads half of a surrogate pair, which the tokenizer then refuses.
const deepestArguments = 100

// readable reports whether arguments are an object that every server can parse.
func readable(arguments string) bool {
	if !strings.HasPrefix(strings.TrimLeft(arguments, " \t\r\n"), "{") || !json.Valid([]byte(arguments)) {
		return false
	}
	depth := 0
	for i := 0; i < len(arguments); i++ {
		switch c := arguments[i]; {
		case c == '"':
			end := i + 1
			for arguments[end] != '"' {
				if arguments[end] == '\\' {
					end++
				}
				end++
			}
			if halved(arguments[i:end]) {
				return false
			}
			i = end
		case c == '{' || c == '[':
			if depth++; depth > deepestArguments {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || c >= '0' && c <= '9':
			start := i
			for i < len(arguments) && strings.IndexByte("+-.eE0123456789", arguments[i]) >= 0 {
				i++
			}
			if _, err := strconv.ParseFloat(arguments[start:i], 64); err != nil {
				return false
			}
			i--
		}
	}
	return true
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

// halved reports whether a JSON string has half of a surrogate pair.
func halved(text string) bool {
	if !strings.Contains(text, `\u`) {
		return false
	}
	for _, escape := range halves.FindAllString(text, -1) {
		if mendHalf(escape) != escape {
			return true
		}
	}
	return false
}
