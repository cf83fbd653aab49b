package harbor

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is one of task.toml. Keys that were not read when done is called are unknown.
type table struct {
	task   *task
	at     string // "environment."; "" is the root
	values map[string]any
	known  []string
}

func (t *table) take(key string) (any, bool) {
	t.known = append(t.known, key)
	value, ok := t.values[key]
	return value, ok
}

func (t *table) wrongf(key, format string, arguments ...any) {
	t.task.wrongf("%s: %s%s: %s", configName, t.at, key, fmt.Sprintf(format, arguments...))
}

// done names the keys that have no meaning here.
func (t *table) done() {
	slices.Sort(t.known)
	for _, key := range sortedNames(t.values) {
		if !slices.Contains(t.known, key) {
			t.wrongf(key, "it is not known here (have %s)", strings.Join(t.known, ", "))
		}
	}
}

func (t *table) text(key string) string {
	value, ok := t.take(key)
	text, is := value.(string)
	if ok && (!is || strings.ContainsRune(text, 0)) {
		t.wrongf(key, "%v, want a string", value)
	}
	return text
}

// number is 0 when it is not there.
func (t *table) number(key string) float64 {
	value, ok := t.take(key)
	if !ok {
		return 0
	}
	var number float64
	switch value := value.(type) {
	case int64:
		number = float64(value)
	case float64:
		number = value
	default:
		number = math.NaN()
	}
	if !(number >= 0 && number <= 1<<53) {
		t.wrongf(key, "%v, want a number from 0", value)
		return 0
	}
	return number
}

func (t *table) flag(key string) (is, given bool) {
	value, ok := t.take(key)
	if is, given = value.(bool); ok && !given {
		t.wrongf(key, "%v, want true or false", value)
	}
	return is, given
}

func (t *table) list(key string) []string {
	value, ok := t.take(key)
	items, is := value.([]any)
	if ok && !is {
		t.wrongf(key, "%v, want a list of strings", value)
	}
	var texts []string
	for _, item := range items {
		text, is := item.(string)
		if !is {
			t.wrongf(key, "%v, want a string", item)
		}
		texts = append(texts, text)
	}
	return texts
}

// table is empty when it is not there.
func (t *table) table(key string) *table {
	value, ok := t.take(key)
	values, is := value.(map[string]any)
	if ok && !is {
		t.wrongf(key, "%v, want a table", value)
	}
	return &table{task: t.task, at: t.at + key + ".", values: values}
}

func (t *table) tables(key string) (all []*table) {
	value, ok := t.take(key)
	items, is := value.([]any)
	if ok && !is {
		t.wrongf(key, "%v, want tables", value)
	}
	for i, item := range items {
		values, is := item.(map[string]any)
		if !is {
			t.wrongf(key, "%v, want a table", item)
		}
		all = append(all, &table{task: t.task, at: fmt.Sprintf("%s%s[%d].", t.at, key, i), values: values})
	}
	return all
}

// refuse reports a key with a value, as its feature is not supported.
func (t *table) refuse(key, why string) {
	value, ok := t.take(key)
	switch value := value.(type) {
	case nil:
		return
	case string:
		ok = value != ""
	case []any:
		ok = len(value) > 0
	case map[string]any:
		ok = len(value) > 0
	case int64:
		ok = value != 0
	case float64:
		ok = value != 0
	case bool:
		ok = value
	}
	if ok {
		t.wrongf(key, "%s", why)
	}
}

// fromRunner is a value that comes from the environment of the user who runs the task.
var fromRunner = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}$`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// env is a table of variables.
func (t *table) env(key string) map[string]string {
	inner := t.table(key)
	env := map[string]string{}
	for _, name := range sortedNames(inner.values) {
		text, is := inner.values[name].(string)
		if !is || strings.ContainsRune(text, 0) || !variableName.MatchString(name) {
			inner.wrongf(name, "%v, want a variable's name and a string", inner.values[name])
			continue
		}
		if m := fromRunner.FindStringSubmatch(text); m != nil {
			if text = m[3]; m[2] == "" {
				inner.wrongf(name, "it is taken from the runner's environment, of which a task gets nothing; write its value, or a default as ${%s:-VALUE}", m[1])
			}
		}
		env[name] = text
	}
	return env
}

func validText(data []byte) bool { return utf8.Valid(data) && !slices.Contains(data, 0) }
