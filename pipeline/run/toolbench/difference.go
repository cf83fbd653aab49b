package toolbench

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Difference is the first one between two results.
type Difference struct {
	At   string `json:"at"`   // JSON pointer
	Kind string `json:"kind"` // time, order, path, number or other
	From string `json:"from"`
	To   string `json:"to"`
}

// difference finds the first difference between two JSON values; nil without one.
func difference(at string, a, b any) *Difference {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		names := maps.Clone(x)
		maps.Copy(names, y)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			_, inX := x[name]
			_, inY := y[name]
			place := at + "/" + escape.Replace(name)
			if inX != inY {
				return &Difference{place, "other", presence(x, name), presence(y, name)}
			}
			if d := difference(place, x[name], y[name]); d != nil {
				return d
			}
		}
		return nil
	case []any:
		y, ok := b.([]any)
		if !ok {
			break
		}
		if len(x) == len(y) && text(x) != text(y) && slices.Equal(sortedTexts(x), sortedTexts(y)) {
			return &Difference{at, "order", text(x), text(y)}
		}
		for i := range min(len(x), len(y)) {
			if d := difference(fmt.Sprintf("%s/%d", at, i), x[i], y[i]); d != nil {
				return d
			}
		}
		if len(x) != len(y) {
			return &Difference{at, "other", text(x), text(y)}
		}
		return nil
	}
	if from, to := text(a), text(b); from != to {
		return &Difference{at, kindOf(at, from, to), from, to}
	}
	return nil
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func presence(in map[string]any, name string) string {
	if value, ok := in[name]; ok {
		return text(value)
	}
	return "absent"
}

func sortedTexts(values []any) (texts []string) {
	for _, value := range values {
		texts = append(texts, text(value))
	}
	return slices.Sorted(slices.Values(texts))
}

var (
	timeName = regexp.MustCompile(`(?i)time|date|elapsed|duration|seconds|_at$|_ms$|_us$`)
	timeText = regexp.MustCompile(`\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\b1[5-9]\d{8}`)
	pathText = regexp.MustCompile(`"[^"]*(/[\w.-]+){2,}`)
	numbers  = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
)

// kindOf guesses what kind of a difference it is, for a person to look where it comes from.
func kindOf(at, from, to string) string {
	name := at[strings.LastIndex(at, "/")+1:]
	switch {
	case timeName.MatchString(name) || timeText.MatchString(from) && timeText.MatchString(to):
		return "time"
	case linesOf(from) == linesOf(to) && strings.Contains(from, `\n`):
		return "order"
	case pathText.MatchString(from) && pathText.MatchString(to):
		return "path"
	case numbers.ReplaceAllString(from, "0") == numbers.ReplaceAllString(to, "0"):
		return "number"
	}
	return "other"
}

// linesOf are the lines of a JSON text, sorted.
func linesOf(text string) string {
	lines := strings.Split(strings.Trim(text, `"`), `\n`)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// pointed is the value at a JSON pointer (RFC 6901).
func pointed(value any, pointer string) (any, bool) {
	if pointer == "" {
		return value, true
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch in := value.(type) {
		case map[string]any:
			found, ok := in[part]
			if !ok {
				return nil, false
			}
			value = found
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			value = in[i]
		default:
			return nil, false
		}
	}
	return value, true
}
