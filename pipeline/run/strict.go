package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"trajgen/datasets"
	"trajgen/pipeline/where/nearest"
	"trajgen/sandbox"
)

// Decode reads a YAML file into a struct, over its values. Each error names the line, the key and what would have been right.
// what describes the file in errors, such as "a run file".
func Decode(path, what string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", strings.TrimPrefix(what, "a "), err)
	}
	return DecodeText(data, path, what, into)
}

// DecodeText is Decode for the text of a file that is not there yet.
func DecodeText(data []byte, path, what string, into any) error {
	root, err := datasets.ParseYAML(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if root == nil {
		return nil
	}
	if err := root.Decode(new(any)); err != nil { // finds duplicate keys
		return fmt.Errorf("%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	d := strictDecoder{path: path, what: what, sections: sectionsOf(into)}
	d.value("", root, reflect.ValueOf(into).Elem())
	return errors.Join(d.wrong...)
}

// strictDecoder walks a document and its target together, since the library's errors do not name keys and it truncates
// fractions.
type strictDecoder struct {
	path, what string
	sections   map[string]string // of a run file: the place of each setting, by its flag's name with _
	wrong      []error
}

func (d *strictDecoder) bad(node *yaml.Node, format string, args ...any) {
	d.wrong = append(d.wrong, fmt.Errorf("%s:%d: %s", d.path, node.Line, fmt.Sprintf(format, args...)))
}

// value decodes a node at a key, such as fallbacks[0].model.
func (d *strictDecoder) value(at string, node *yaml.Node, into reflect.Value) {
	switch kind := into.Kind(); {
	case node.ShortTag() == "!!null":
	case kind == reflect.Pointer:
		target := reflect.New(into.Type().Elem())
		d.value(at, node, target.Elem())
		into.Set(target)
	case kind == reflect.Struct && node.Kind == yaml.MappingNode:
		d.fields(at, node, into)
	case kind == reflect.Slice && node.Kind == yaml.SequenceNode:
		list := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
		for i, item := range node.Content {
			d.value(fmt.Sprintf("%s[%d]", at, i), item, list.Index(i))
		}
		into.Set(list)
	case kind == reflect.Map && node.Kind == yaml.MappingNode:
		all := reflect.MakeMap(into.Type())
		for i := 0; i < len(node.Content); i += 2 {
			name := node.Content[i].Value
			value := reflect.New(into.Type().Elem()).Elem()
			d.value(at+"."+name, node.Content[i+1], value)
			all.SetMapIndex(reflect.ValueOf(name), value)
		}
		into.Set(all)
	case (into.CanInt() || into.CanUint()) && fraction(node) || node.Decode(into.Addr().Interface()) != nil:
		d.bad(node, "%s is %s; want %s", cmp.Or(at, d.what), written(node), wanted(into.Type(), node))
	}
}

// fields decodes the keys of a mapping into a struct.
func (d *strictDecoder) fields(at string, node *yaml.Node, into reflect.Value) {
	names, fields := keysOf(into)
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field := slices.Index(names, key.Value)
		place := d.sections[key.Value]
		switch {
		case place != "" && (field < 0 || at == "" && value.Kind != yaml.MappingNode):
			section, name, _ := strings.Cut(place, ".")
			d.bad(key, "%s stands in a section of the run file: write %s: {%s: ...}", key.Value, section, name)
		case key.Value == "" || field < 0:
			d.bad(key, "%s is not a key of %s%s", cmp.Or(key.Value, "an empty text"), cmp.Or(at, d.what), meantKey(key.Value, names, d.sections))
		case at == "":
			d.value(key.Value, value, fields[field])
		default:
			d.value(at+"."+key.Value, value, fields[field])
		}
	}
}

// keysOf are the keys of a struct's fields, "" for a field without one, and the fields.
func keysOf(in reflect.Value) (names []string, fields []reflect.Value) {
	for about, field := range fieldsOf(in) {
		names, fields = append(names, keyOf(about)), append(fields, field)
	}
	return names, fields
}

// sectionsOf maps each setting of a run file, by its flag's name with _, to its section. It is nil for other structs.
func sectionsOf(into any) map[string]string {
	file, ok := into.(*File)
	if !ok {
		return nil
	}
	places := map[string]string{}
	for _, s := range file.Settings() {
		if strings.Contains(s.Key, ".") {
			places[s.name()] = s.Key
		}
	}
	return places
}

// meantKey suggests the key that was probably meant, or lists the keys.
func meantKey(name string, names []string, sections map[string]string) string {
	if meant := nearest.DidYouMean(name, names); meant != "" {
		return meant
	}
	if meant := nearest.To(name, slices.Collect(maps.Keys(sections))); meant != "" {
		return fmt.Sprintf(" (did you mean %q?)", sections[meant])
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	return fmt.Sprintf(" (have %s)", strings.Join(names, ", "))
}

// fraction reports whether a node is a number that is not whole.
func fraction(node *yaml.Node) bool {
	number, err := strconv.ParseFloat(node.Value, 64)
	return node.ShortTag() == "!!float" && (err != nil || number != math.Trunc(number))
}

// written shows a node in a few words.
func written(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.ShortTag() == "!!str":
		return fmt.Sprintf("%.60q", node.Value)
	}
	return fmt.Sprintf("%.60s", node.Value)
}

// wanted describes the form that a type must have, if the node has another one.
func wanted(t reflect.Type, node *yaml.Node) string {
	switch kind := kindOf(t); {
	case kind == "list" && node.Kind == yaml.ScalarNode:
		return fmt.Sprintf("a list, such as [%.60s]", node.Value)
	case t.Kind() == reflect.Struct:
		names, _ := keysOf(reflect.Zero(t))
		return "a mapping with the keys " + strings.Join(names, ", ")
	case t.Kind() == reflect.Map:
		return "a mapping of keys and values"
	default:
		return kindNames[kind]
	}
}

// kindOf names the form in which a field of a run file is written.
func kindOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[sandbox.Size]():
		return "size"
	}
	switch t.Kind() {
	case reflect.Map:
		return "pairs"
	case reflect.Slice:
		return "list"
	case reflect.Float64:
		return "number"
	case reflect.Uint64:
		return "uint"
	}
	return t.Kind().String()
}

// kindNames describes the form of each kind.
var kindNames = map[string]string{
	"bool": "true or false", "int": "a whole number", "uint": "a whole number from 0", "number": "a number", "string": "a text", "list": "a list",
	"duration": "a duration such as 90s or 5m", "size": "a size such as 512M or 2G", "pairs": "NAME=VALUE",
}
