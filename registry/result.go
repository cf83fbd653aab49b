package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"trajgen/pipeline/episode"
)

// Failf is a Failure with a class and a message.
func Failf(class, format string, args ...any) *Failure {
	return &Failure{Class: class, Message: fmt.Sprintf(format, args...)}
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode is json.Marshal without escapes for HTML, which only cost a model tokens.
func encode(v any) (string, error) {
	b := buffers.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= 1<<20 {
			b.Reset()
			buffers.Put(b)
		}
	}()
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// failureText is the failure as the model reads it, error first.
func (f *Failure) text() (string, error) {
	text := `{"error":` + quote(f.Message)
	for _, key := range sortedKeys(f.Extra) {
		if key == "error" {
			continue
		}
		extra, err := encode(f.Extra[key])
		if err != nil {
			return "", fmt.Errorf("encode %s of a failure: %w", key, err)
		}
		text += "," + quote(key) + ":" + extra
	}
	return text + "}", nil
}

// minResult leaves room for the envelope of a cut result.
const minResult = 512

// fitResult cuts a result to its limit: the new result is a valid object with the beginning and the end of the old one. An error
// stays an error.
func fitResult(text string, limit int, failure string) string {
	size := len(text)
	if size <= limit {
		return text
	}
	if failure != "" {
		failure = `"error":` + quoteWithin(failure, limit/4) + ","
	}
	// Quotes and backslashes double when the pieces are encoded, so the size of the pieces is found by trying.
	for room := limit; ; room = room * 3 / 4 {
		head, tail := text[:room*2/5], text[size-room*3/5:]
		cut := fmt.Sprintf(`{%s"truncated":true,"original_bytes":%d,"note":"the result was too long; head and tail are its`+
			` beginning and end","head":%s,"tail":%s}`,
			failure, size, quote(wholeRunes(head)), quote(wholeRunes(tail)))
		if len(cut) <= limit || room == 0 {
			return cut
		}
	}
}

// quoteWithin cuts a text so that it fits a JSON string of a size in bytes.
func quoteWithin(text string, size int) string {
	for chars := size; ; chars = chars * 3 / 4 {
		if quoted := quote(shorten(text, chars)); len(quoted) <= size || chars == 0 {
			return quoted
		}
	}
}

// wholeRunes drops the halves of characters at both ends of a piece of a text.
func wholeRunes(piece string) string { return strings.ToValidUTF8(piece, "") }

// maxErrorText is how much of an unexpected error a model is shown, in characters.
const maxErrorText = 2000

var structure = regexp.MustCompile(`(?i)</?\s*(tool_call|function_call|result|response|output|input|system|assistant|user)` +
	`\b[^<>]*>|<!\[CDATA\[|\]\]>|` + "```+[a-z]*")

// sanitise is an unexpected error's text for a model. Such text may quote content that the tool worked on.
func sanitise(text string) string {
	text = strings.ToValidUTF8(shorten(text, 4*maxErrorText), "\uFFFD")
	return "[TOOL_ERROR] " + shorten(strings.TrimSpace(Untagged(text)), maxErrorText)
}

// Untagged removes text that a chat template could take for the structure of the conversation. It repeats that until none is left,
// as removing one tag can join the halves of another.
func Untagged(text string) string {
	for {
		clean := structure.ReplaceAllString(text, "")
		if clean == text {
			return text
		}
		text = clean
	}
}

// invalid is the answer to arguments that do not fit: all mistakes, and what would be right.
func (t *Tool) invalid(problems []problem) *Failure {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Error()
	}
	return &Failure{
		Class: "invalid_arguments", Status: episode.CallInvalidArguments,
		Message: "invalid arguments for " + t.Name + ": " + shorten(strings.Join(lines, "; "), maxErrorText),
		Extra:   map[string]any{"problems": problems, "example": json.RawMessage(t.plan().example(problems))},
	}
}
