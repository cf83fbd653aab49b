package export

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Setting is one of a format's own settings.
type Setting struct {
	About string // a clause that says what it does

	words []string       // what it may be, the default first, which is empty where it has no name; nil is any text
	form  *regexp.Regexp // what it must look like; nil is anything
	want  string         // that in words
}

// ParseSettings reads settings that are written as NAME=VALUE.
func ParseSettings(texts []string) (map[string]string, error) {
	set := map[string]string{}
	var errs []error
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			errs = append(errs, fmt.Errorf("--set %q (want NAME=VALUE)", text))
		} else if had, twice := set[name]; twice && had != value {
			errs = append(errs, fmt.Errorf("--set %s is both %q and %q (want one of them)", name, had, value))
		}
		set[name] = value
	}
	return set, errors.Join(errs...)
}

// settings are those that were asked for, checked, and the defaults of the others.
func (f Format) settings(format string, asked map[string]string) (map[string]string, error) {
	set := maps.Clone(asked)
	if set == nil {
		set = map[string]string{}
	}
	var errs []error
	for _, name := range sortedKeys(asked) {
		value := asked[name]
		setting, known := f.Settings[name]
		switch words := setting.words; {
		case !known:
			have := cmp.Or(strings.Join(sortedKeys(f.Settings), ", "), "none")
			errs = append(errs, fmt.Errorf("output format %s has no setting %q (have %s)", format, name, have))
		case words != nil && (value == "" || !slices.Contains(words, value)):
			have := strings.TrimPrefix(strings.Join(words, ", "), ", ")
			errs = append(errs, fmt.Errorf("output format %s: %s is %q (have %s)", format, name, value, have))
		case setting.form != nil && !setting.form.MatchString(value):
			errs = append(errs, fmt.Errorf("output format %s: %s is %q (want %s)", format, name, value, setting.want))
		}
	}
	for name, setting := range f.Settings {
		if _, given := asked[name]; !given && setting.words != nil {
			set[name] = setting.words[0]
		}
	}
	return set, errors.Join(errs...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
