package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"trajgen/sandbox"

	"go.yaml.in/yaml/v3"
)

// Setting is one field of a run file, with its tags.
type Setting struct {
	Key     string        // in the run file: limits.turns
	Flag    string        // max-turns; also set for a field that has no flag
	Group   string        // of the flags in the help
	Help    string        // of the flag; "" for a field without one
	Decides string        // the tag experiment
	Value   reflect.Value // the field, which can be set
}

// name is the setting's name in fingerprints, and in older run files without sections.
func (s Setting) name() string { return strings.ReplaceAll(s.Flag, "-", "_") }

// Settings are the fields of a run file and of its sections, in their order.
func (f *File) Settings() []Setting { return settings("", "The run", reflect.ValueOf(f).Elem()) }

// SettingsOf are those of another struct with the same tags.
func SettingsOf(of any) []Setting { return settings("", "", reflect.ValueOf(of).Elem()) }

func settings(prefix, group string, in reflect.Value) (all []Setting) {
	for field, value := range fieldsOf(in) {
		key := keyOf(field)
		switch section := field.Tag.Get("section"); {
		case key == "":
		case section != "":
			all = append(all, settings(key+".", section, value)...)
		default:
			all = append(all, Setting{
				Key: prefix + key, Flag: cmp.Or(field.Tag.Get("flag"), strings.ReplaceAll(key, "_", "-")), Group: group,
				Help: field.Tag.Get("help"), Decides: field.Tag.Get("experiment"), Value: value,
			})
		}
	}
	return all
}

// keyOf is a field's key in YAML; "" if it has none.
func keyOf(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
	return key
}

// checkSigns refuses settings below 0.
func checkSigns(all []Setting) error {
	var errs []error
	for _, s := range all {
		v := s.Value
		if v.CanInt() && v.Int() < 0 || v.CanFloat() && !(v.Float() >= 0 && v.Float() <= math.MaxFloat64) {
			errs = append(errs, fmt.Errorf("%s (--%s) is %v; not below 0", s.Key, s.Flag, v.Interface()))
		}
	}
	return errors.Join(errs...)
}

// text is the setting's text in a fingerprint.
func (s Setting) text() string {
	switch v := s.Value.Interface().(type) {
	case string:
		return v
	case time.Duration:
		return v.String()
	case sandbox.Size:
		return v.String()
	case []string:
		return strings.Join(slices.Sorted(slices.Values(v)), ",")
	default:
		if s.Value.Kind() == reflect.Map && s.Value.Len() == 0 {
			return ""
		}
		return jsonText(v)
	}
}

func jsonText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// MarshalJSON writes the keys of a run file.
func (f File) MarshalJSON() ([]byte, error) {
	text, err := yaml.Marshal(plainRunFile(f))
	if err != nil {
		return nil, err
	}
	var keys map[string]any
	if err := yaml.Unmarshal(text, &keys); err != nil {
		return nil, err
	}
	return json.Marshal(keys)
}

// UnmarshalJSON reads what MarshalJSON writes, and the keys without sections that older versions wrote.
func (f *File) UnmarshalJSON(data []byte) error {
	var keys map[string]any
	if err := yaml.Unmarshal(data, &keys); err != nil { // JSON is YAML
		return err
	}
	for _, s := range f.Settings() {
		section, key, inSection := strings.Cut(s.Key, ".")
		value, flat := keys[s.name()]
		if _, isSection := value.(map[string]any); !inSection || !flat || isSection && s.name() == section {
			continue
		}
		delete(keys, s.name())
		within, _ := keys[section].(map[string]any)
		if within == nil {
			within = map[string]any{}
		}
		within[key] = value
		keys[section] = within
	}
	text, err := yaml.Marshal(keys)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(text, (*plainRunFile)(f))
}

// plainRunFile is File without its methods.
type plainRunFile File
