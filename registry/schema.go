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
// cannot describe, which is a bug in a tool's source.
//
// jsonschema-go is not used because the tags are the manual that a model reads: bounds, enums, defaults and required fields would
// have to be patched into its result field by field.
func describe(t reflect.Type) json.RawMessage {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("arguments must be a struct, not %s", t))
	}
	return structSchema(t, nil)
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

func structSchema(t reflect.Type, outer []reflect.Type) []byte {
	if slices.Contains(outer, t) {
		panic(fmt.Sprintf("%s contains itself", t))
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
		properties = append(properties, quote(name)+":"+string(fieldSchema(t, field, outer)))
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
	return []byte(text + "}")
}

// fieldSchema is a type's schema with the keywords of the field's tags.
func fieldSchema(owner reflect.Type, field reflect.StructField, outer []reflect.Type) []byte {
	t := field.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var tags []string
	add := func(keyword, text string) { tags = append(tags, quote(keyword)+":"+text) }
	bad := func(tag, text string) {
		panic(fmt.Sprintf("%s.%s: %s %q does not go with %s", owner, field.Name, tag, text, t))
	}
	if doc := field.Tag.Get("doc"); doc != "" {
		add("description", quote(doc))
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
	var enum string
	if list := field.Tag.Get("enum"); list != "" {
		element := t
		if t.Kind() == reflect.Slice {
			element = t.Elem()
		}
		var choices []string
		for choice := range strings.SplitSeq(list, ",") {
			choices = append(choices, literal("enum", strings.TrimSpace(choice), element))
		}
		enum = `"enum":[` + strings.Join(choices, ",") + "]"
		if t.Kind() != reflect.Slice {
			tags = append(tags, enum)
		}
	}
	for _, bound := range []struct{ tag, keyword string }{
		{"min", "minimum"}, {"max", "maximum"}, {"minlen", "minLength"}, {"maxlen", "maxLength"},
		{"minitems", "minItems"}, {"maxitems", "maxItems"},
	} {
		text, ok := field.Tag.Lookup(bound.tag)
		if !ok {
			continue
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil || !bounds(bound.tag, t) {
			bad(bound.tag, text)
		}
		add(bound.keyword, text)
	}
	if text, ok := field.Tag.Lookup("default"); ok {
		add("default", literal("default", text, t))
	}
	if text, ok := field.Tag.Lookup("example"); ok {
		add("examples", "["+literal("example", text, t)+"]")
	}
	return merge(typeSchema(t, enum, outer), tags)
}

func bounds(tag string, t reflect.Type) bool {
	switch tag {
	case "min", "max":
		return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64
	case "minlen", "maxlen":
		return t.Kind() == reflect.String
	}
	return t.Kind() == reflect.Slice
}

// typeSchema is the schema of a Go type; enum goes to the items of a list.
func typeSchema(t reflect.Type, enum string, outer []reflect.Type) []byte {
	if t == rawMessage || t.Kind() == reflect.Interface && t.NumMethod() == 0 {
		return []byte("{}")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), enum, outer)
	case reflect.Bool:
		return []byte(`{"type":"boolean"}`)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return []byte(`{"type":"integer"}`)
	case reflect.Float32, reflect.Float64:
		return []byte(`{"type":"number"}`)
	case reflect.String:
		return []byte(`{"type":"string"}`)
	case reflect.Struct:
		return structSchema(t, outer)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			break // encoding/json reads it as base64
		}
		var tags []string
		if enum != "" {
			tags = []string{enum}
		}
		items := merge(typeSchema(t.Elem(), "", outer), tags)
		return []byte(`{"type":"array","items":` + string(items) + "}")
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return []byte(`{"type":"object","additionalProperties":` + string(typeSchema(t.Elem(), "", outer)) + "}")
		}
	}
	panic(fmt.Sprintf("arguments cannot hold a %s", t))
}

// merge appends keywords to a schema.
func merge(schema []byte, keywords []string) []byte {
	if len(keywords) == 0 {
		return schema
	}
	body := string(schema[:len(schema)-1])
	if body != "{" {
		body += ","
	}
	return []byte(body + strings.Join(keywords, ",") + "}")
}
