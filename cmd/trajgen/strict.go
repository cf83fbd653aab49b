package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/registry"
)

// decodeFile reads a YAML file into a struct, over what that holds. Everything that is wrong is said with its line, its key
// and what would have been right. what is the file in words, such as "a run file".
func decodeFile(path, what string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", strings.TrimPrefix(what, "a "), err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: it holds more than one document; %s is one", path, what)
	}
	if err := document.Decode(new(any)); err != nil { // keys that are there twice, anchors within themselves
		return fmt.Errorf("%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	d := strictDecoder{path: path, what: what}
	d.value("", document.Content[0], reflect.ValueOf(into).Elem())
	return errors.Join(d.wrong...)
}

// strictDecoder walks a document and what it is decoded into together, since the library's own errors do not name keys and
// it cuts fractions off.
type strictDecoder struct {
	path, what string
	wrong      []error
}

func (d *strictDecoder) bad(node *yaml.Node, format string, args ...any) {
	d.wrong = append(d.wrong, fmt.Errorf("%s:%d: %s", d.path, node.Line, fmt.Sprintf(format, args...)))
}

// value decodes a node at a key, such as fallbacks[0].model.
func (d *strictDecoder) value(at string, node *yaml.Node, into reflect.Value) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
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
		for _, entry := range entries(node) {
			value := reflect.New(into.Type().Elem()).Elem()
			d.value(at+"."+entry[0].Value, entry[1], value)
			all.SetMapIndex(reflect.ValueOf(entry[0].Value), value)
		}
		into.Set(all)
	case (into.CanInt() || into.CanUint()) && fraction(node) || node.Decode(into.Addr().Interface()) != nil:
		d.bad(node, "%s is %s; want %s", cmp.Or(at, d.what), written(node), wanted(into.Type(), node))
	}
}

// fields decodes the keys of a mapping into a struct.
func (d *strictDecoder) fields(at string, node *yaml.Node, into reflect.Value) {
	names := keysOf(into.Type())
	for _, entry := range entries(node) {
		name := entry[0].Value
		i := slices.Index(names, name)
		switch {
		case name == "" || i < 0:
			d.bad(entry[0], "%s is not a key of %s%s", cmp.Or(name, "an empty text"), cmp.Or(at, d.what), meantKey(name, names))
		case at == "":
			d.value(name, entry[1], into.Field(i))
		default:
			d.value(at+"."+name, entry[1], into.Field(i))
		}
	}
}

// keysOf are the keys of a struct's fields, in their places; empty for a field that has none.
func keysOf(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
	}
	return names
}

// meantKey says which key was meant, or which there are.
func meantKey(name string, names []string) string {
	const most = 20
	if meant := registry.DidYouMean(name, names); meant != "" {
		return meant
	}
	if len(names) > most {
		return " (its keys are the flags of trajgen run --help, with _ for -)"
	}
	return fmt.Sprintf(" (have %s)", strings.Join(names, ", "))
}

// entries are the keys and values of a mapping: its own, then those that it merges (<<).
func entries(node *yaml.Node) [][2]*yaml.Node {
	var own, merged [][2]*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.ShortTag() != "!!merge" {
			own = append(own, [2]*yaml.Node{key, value})
			continue
		}
		sources := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			sources = value.Content
		}
		for _, source := range sources {
			if source.Kind == yaml.AliasNode {
				source = source.Alias
			}
			merged = append(merged, entries(source)...)
		}
	}
	for _, entry := range merged {
		if !slices.ContainsFunc(own, func(e [2]*yaml.Node) bool { return e[0].Value == entry[0].Value }) {
			own = append(own, entry)
		}
	}
	return own
}

// fraction says whether a node is a number that is not whole.
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

// wanted says what a type is written as, where a node is not.
func wanted(t reflect.Type, node *yaml.Node) string {
	switch kind := kindOf(t); {
	case kind == "list" && node.Kind == yaml.ScalarNode:
		return fmt.Sprintf("a list, such as [%.60s]", node.Value)
	case t.Kind() == reflect.Struct && len(keysOf(t)) < 20:
		return "a mapping with the keys " + strings.Join(keysOf(t), ", ")
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "a mapping of keys and values"
	default:
		return kindNames[kind]
	}
}
