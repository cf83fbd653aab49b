package model

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// unreadable is the member of an object that stands for arguments that are none: what the model wrote stays in its sight.
const unreadable = "invalid_arguments"

// SentArguments is what requests have in the place of the arguments of an earlier call, or "" where they have those: servers
// refuse every request with arguments that they cannot read. It is ran, the object that was made of the arguments and ran,
// if any, or else an object with the text as a member.
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

// What the least patient of the parsers take that servers read arguments with: Rust's nest 128 levels deep, Go's and
// llama.cpp's refuse numbers that no float is, Python's loads half of a surrogate pair, which then cannot be tokenized.
const deepestArguments = 100

// readable says whether arguments are an object that every server reads.
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

// halves finds escapes of surrogates, in pairs where they are, and skips those that stand behind a backslash of their own.
var halves = regexp.MustCompile(`(?i)\\u(d[89ab][0-9a-f]{2}(\\ud[c-f][0-9a-f]{2})?|d[c-f][0-9a-f]{2})|\\[^u]`)

// mendHalf makes the replacement character of half a pair, as every reader does that goes on.
func mendHalf(escape string) string {
	if len(escape) != len(`\ud800`) {
		return escape
	}
	return `\ufffd`
}

// halved says whether a JSON string has half of a surrogate pair.
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
