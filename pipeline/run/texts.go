package run

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"trajgen/sandbox"
)

// Kind names the form in which the setting is written.
func (s Setting) Kind() string { return kindOf(s.Value.Type()) }

// Shown is the setting's value for the help; "" for that of the type.
func (s Setting) Shown() string {
	switch {
	case s.Value.Kind() == reflect.Pointer || s.Value.IsZero():
		return ""
	case s.Value.Kind() == reflect.Slice:
		return strings.Join(s.Value.Interface().([]string), ",")
	}
	return fmt.Sprint(s.Value.Interface())
}

// Check says what is wrong with one of the texts for Take.
func (s Setting) Check(text string) error {
	_, err := parse(s.Kind(), text)
	return err
}

// Take sets the setting from the texts of its flag.
func (s Setting) Take(texts []string) error {
	field := s.Value
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch kind := kindOf(field.Type()); kind {
	case "pairs":
		all := reflect.MakeMap(field.Type())
		for _, text := range texts {
			name, value, _ := strings.Cut(text, "=")
			one, err := parse(kindOf(field.Type().Elem()), value)
			if err != nil {
				return fmt.Errorf("%w, of %s", err, name)
			}
			all.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(one))
		}
		field.Set(all)
	case "list":
		var all []string
		for item := range strings.SplitSeq(strings.Join(texts, ","), ",") {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, item)
			}
		}
		field.Set(reflect.ValueOf(all))
	default:
		value, err := parse(kind, texts[len(texts)-1])
		if err != nil {
			return err
		}
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
	}
	return nil
}

// parse reads a text as a kind of setting; lists and pairs stay texts.
func parse(kind, text string) (value any, err error) {
	switch value = text; kind {
	case "bool":
		value, err = strconv.ParseBool(text)
	case "int":
		value, err = strconv.Atoi(text)
	case "uint":
		value, err = strconv.ParseUint(text, 10, 64)
	case "number":
		value, err = strconv.ParseFloat(text, 64)
	case "duration":
		value, err = time.ParseDuration(text)
	case "size":
		value, err = sandbox.ParseSize(text)
	case "pairs":
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			err = errors.New("no name")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not %s", text, kindNames[kind])
	}
	return value, nil
}
