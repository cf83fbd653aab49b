package toolbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
)

// Want is what a call is expected to do. What is left out is not looked at, except that without a status a call must be ok.
type Want struct {
	Status   episode.CallStatus `yaml:"status,omitempty"`
	Class    string             `yaml:"class,omitempty"`
	Contains []string           `yaml:"contains,omitempty"`  // texts in the result, which is JSON
	Equals   any                `yaml:"equals,omitempty"`    // the whole result
	At       map[string]any     `yaml:"at,omitempty"`        // JSON pointer → value in the result
	ExitCode *int               `yaml:"exit_code,omitempty"` // of the command or script
	Files    map[string]*string `yaml:"files,omitempty"`     // afterwards: path → text; null for none

	answers bool // any answer will do, as long as the tool gives one in time
}

// check says what is not as expected.
func (w *Want) check(ctx context.Context, call *episode.ToolCall, files sandbox.Files) (wrong []string) {
	add := func(what string, got, want any) {
		if g, w := text(got), text(want); g != w {
			wrong = append(wrong, fmt.Sprintf("%s is %s; want %s", what, short(g), short(w)))
		}
	}
	switch {
	case w.answers && (call.Status == episode.CallTimeout || call.Status == episode.CallUnavailable):
		wrong = append(wrong, fmt.Sprintf("status is %q; want an answer", call.Status))
	case w.answers:
	case w.Status == "":
		add("status", call.Status, episode.CallOK)
	default:
		add("status", call.Status, w.Status)
	}
	if w.Class != "" {
		add("class", call.ErrorClass, w.Class)
	}
	for _, part := range w.Contains {
		if !strings.Contains(call.Result, part) {
			wrong = append(wrong, fmt.Sprintf("result is %s; want %q in it", short(call.Result), part))
		}
	}
	var result any
	if err := json.Unmarshal([]byte(call.Result), &result); err != nil {
		wrong = append(wrong, "result is not JSON: "+short(call.Result))
	}
	if w.Equals != nil {
		if d := difference("", result, plain(w.Equals)); d != nil {
			wrong = append(wrong, fmt.Sprintf("result%s is %s; want %s", d.At, short(d.From), short(d.To)))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(w.At)) {
		if got, ok := pointed(result, at); ok {
			add("result"+at, got, w.At[at])
		} else {
			wrong = append(wrong, fmt.Sprintf("result has no %s: %s", at, short(call.Result)))
		}
	}
	if w.ExitCode != nil {
		add("exit code", call.ExitCode, w.ExitCode)
	}
	return append(wrong, w.checkFiles(ctx, files)...)
}

func (w *Want) checkFiles(ctx context.Context, files sandbox.Files) (wrong []string) {
	for _, path := range slices.Sorted(maps.Keys(w.Files)) {
		want := w.Files[path]
		got, _, err := files.Read(ctx, path, 0, 1<<20)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if want != nil {
				wrong = append(wrong, fmt.Sprintf("file %s does not exist; want %s", path, short(text(*want))))
			}
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("file %s: %v", path, err))
		case want == nil:
			wrong = append(wrong, fmt.Sprintf("file %s is %s; want none", path, short(text(string(got)))))
		case string(got) != *want:
			wrong = append(wrong, fmt.Sprintf("file %s is %s; want %s", path, short(text(string(got))), short(text(*want))))
		}
	}
	return wrong
}

// text is the JSON text of a value.
func text(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// plain is a value as JSON decodes it.
func plain(value any) (as any) {
	_ = json.Unmarshal([]byte(text(value)), &as)
	return as
}

// short cuts a text for a line of output.
func short(line string) string {
	if runes := []rune(line); len(runes) > 160 {
		return string(runes[:157]) + "..."
	}
	return line
}
