package registry

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// describe writes the JSON Schema of an argument struct, with properties in the order of the fields. It panics on a type that it
// cannot describe, which is a bug in a tool's source. outer are the structs around this one.
//
// jsonschema-go is not used because the tags are the manual that a model reads: bounds, enums, defaults and required fields would
// have to be patched into its result field by field.
func describe(t reflect.Type, outer ...reflect.Type) string {
	if t.Kind() != reflect.Struct || slices.Contains(outer, t) {
		panic(fmt.Sprintf("arguments must be a struct that does not contain itself, not %s", t))
	}
	outer = append(slices.Clone(outer), t)
	var properties, required []string
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous || !field.IsExported() {
			continue // VisibleFields lists what an embedded struct promotes
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			panic(fmt.Sprintf("%s.%s has no json name", t, field.Name))
		}
		properties = append(properties, quote(name)+":"+fieldSchema(t, field, outer))
		optional := strings.Contains(options, "omit") || field.Type.Kind() == reflect.Pointer
		if _, filled := field.Tag.Lookup("default"); filled && !optional {
			panic(fmt.Sprintf("%s.%s has a default but is required", t, field.Name))
		}
		if !optional {
			required = append(required, quote(name))
		}
	}
	text := `{"type":"object","properties":{` + strings.Join(properties, ",") + "}"
	if len(required) > 0 {
		text += `,"required":[` + strings.Join(required, ",") + "]"
	}
	return text + "}"
}

// fieldSchema is a type's schema with the keywords of the field's tags.
func fieldSchema(owner reflect.Type, field reflect.StructField, outer []reflect.Type) string {
	t := field.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	bad := func(tag, text string) {
		panic(fmt.Sprintf("%s.%s: %s %q does not go with %s", owner, field.Name, tag, text, t))
	}
	literal := func(tag, text string, t reflect.Type) string {
		if t.Kind() == reflect.String {
			if strings.HasPrefix(text, `"`) && json.Valid([]byte(text)) {
				return text
			}
			return quote(text)
		}
		if json.Unmarshal([]byte(text), reflect.New(t).Interface()) != nil {
			bad(tag, text)
		}
		return text
	}
	schema := typeSchema(t, outer)
	add := func(keyword, text string) { schema = with(schema, keyword, text) }
	if doc := field.Tag.Get("doc"); doc != "" {
		add("description", quote(doc))
	}
	if tag := field.Tag.Get("enum"); tag != "" {
		var choices []string
		for choice := range strings.SplitSeq(tag, ",") {
			choices = append(choices, literal("enum", strings.TrimSpace(choice), t))
		}
		add("enum", "["+strings.Join(choices, ",")+"]")
	}
	number, text, list := t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64, t.Kind() == reflect.String, t.Kind() == reflect.Slice
	for _, bound := range []struct {
		tag, keyword string
		fits         bool
	}{
		{"min", "minimum", number}, {"max", "maximum", number}, {"minlen", "minLength", text}, {"maxlen", "maxLength", text},
		{"minitems", "minItems", list}, {"maxitems", "maxItems", list},
	} {
		if text, ok := field.Tag.Lookup(bound.tag); ok {
			if _, err := strconv.ParseFloat(text, 64); err != nil || !bound.fits {
				bad(bound.tag, text)
			}
			add(bound.keyword, text)
		}
	}
	if text, ok := field.Tag.Lookup("default"); ok {
		add("default", literal("default", text, t))
	}
	if text, ok := field.Tag.Lookup("example"); ok {
		add("examples", "["+literal("example", text, t)+"]")
	}
	return schema
}

// with is a schema with another keyword.
func with(schema, keyword, text string) string {
	body := strings.TrimSuffix(schema, "}")
	if body != "{" {
		body += ","
	}
	return body + quote(keyword) + ":" + text + "}"
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// typeSchema is the schema of a Go type.
func typeSchema(t reflect.Type, outer []reflect.Type) string {
	switch kind := t.Kind(); {
	case t == rawMessage || kind == reflect.Interface && t.NumMethod() == 0:
		return "{}"
	case kind == reflect.Pointer:
		return typeSchema(t.Elem(), outer)
	case kind == reflect.Bool:
		return `{"type":"boolean"}`
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return `{"type":"integer"}`
	case kind == reflect.Float32 || kind == reflect.Float64:
		return `{"type":"number"}`
	case kind == reflect.String:
		return `{"type":"string"}`
	case kind == reflect.Struct:
		return describe(t, outer...)
	case kind == reflect.Slice && t.Elem().Kind() != reflect.Uint8: // encoding/json reads bytes as base64
		return `{"type":"array","items":` + typeSchema(t.Elem(), outer) + "}"
	case kind == reflect.Map && t.Key().Kind() == reflect.String:
		return `{"type":"object","additionalProperties":` + typeSchema(t.Elem(), outer) + "}"
	}
	panic(fmt.Sprintf("arguments cannot hold a %s", t))
}
