package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"trajgen/datasets/internal/harbor"
	"trajgen/pipeline/episode"
)

// yamlRows reads a top-level list of tasks. YAML cannot be streamed, so the file is held in memory, at most maxRow
// of it: it is the form for tasks that are written by hand.
func yamlRows(text *bufio.Reader, _ string, yield func(row) bool) error {
	data, err := readBounded(text)
	if err != nil {
		return err
	}
	if harbor.IsFirst(data) {
		return errTerminalBench
	}
	list, err := ParseYAML(data)
	if err != nil {
		return err
	}
	return taskRows(list, yield)
}

func taskRows(list *yaml.Node, yield func(row) bool) error {
	if list == nil {
		return nil // an empty file has no rows
	}
	if list.Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: want a list of tasks (- id: ...)", list.Line)
	}
	for _, node := range list.Content {
		r := row{line: node.Line}
		value, err := encodeYAML(node, plainText)
		switch {
		case err != nil:
			r.broken = err.Error()
		case node.Kind != yaml.MappingNode:
			r.broken = "the row is " + kindOf(value) + ", want a mapping such as {prompt: ...}"
		default:
			r.text = value
		}
		if !yield(r) {
			return nil
		}
	}
	return nil
}

// errTerminalBench is about a file of a task that is a directory.
var errTerminalBench = errors.New("it is part of a task of Terminal-Bench, which is a directory: give the directory, or the one with all tasks")

// ParseYAML returns the root of the only document, or nil when there is none. What aliases and merges (<<) stand for is in
// their place.
func ParseYAML(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, rest yaml.Node
	if err := decoder.Decode(&document); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if decoder.Decode(&rest) != io.EOF {
		return nil, errors.New("a second YAML document follows; a file holds one")
	}
	root := document.Content[0]
	if hasAliases(root) {
		// The library knows anchors that are within themselves, and those that would make a small file a large one.
		if err := root.Decode(new(any)); err != nil {
			return nil, errors.New(strings.Join(strings.Fields(err.Error()), " "))
		}
		expand(root)
	}
	return root, nil
}

func hasAliases(node *yaml.Node) bool {
	return node.Kind == yaml.AliasNode || node.ShortTag() == "!!merge" || slices.ContainsFunc(node.Content, hasAliases)
}

// expand puts into a node what its aliases and merges stand for. A mapping's own keys win over those that it merges.
func expand(node *yaml.Node) {
	for i, inner := range node.Content {
		if inner.Kind == yaml.AliasNode {
			node.Content[i] = inner.Alias
		}
		expand(node.Content[i])
	}
	if node.Kind != yaml.MappingNode {
		return
	}
	var own, merged []*yaml.Node
	has := map[string]bool{}
	for key, value := range entries(node) {
		switch {
		case key.ShortTag() != "!!merge":
			has[key.Value] = true
			own = append(own, key, value)
		case value.Kind == yaml.SequenceNode:
			for _, each := range value.Content {
				merged = append(merged, each.Content...)
			}
		default:
			merged = append(merged, value.Content...)
		}
	}
	for pair := range slices.Chunk(merged, 2) {
		if !has[pair[0].Value] {
			has[pair[0].Value] = true
			own = append(own, pair...)
		}
	}
	node.Content = own
}

// entries are the keys and values of a mapping; another node has none.
func entries(mapping *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if mapping.Kind != yaml.MappingNode {
			return
		}
		for pair := range slices.Chunk(mapping.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

// plainText is the text of a string in a file of tasks.
func plainText(node *yaml.Node) (json.RawMessage, error) {
	if node.ShortTag() == jsonTag {
		return nil, fmt.Errorf("line %d: %s belongs in mapping files", node.Line, jsonTag)
	}
	return episode.JSON(node.Value)
}

// encodeYAML turns a node into JSON text, keys in their order. Strings, keys among them, and scalars tagged !json go
// through text. Whatever JSON has no word for, and whatever YAML would read in a surprising way, is refused.
func encodeYAML(node *yaml.Node, text func(*yaml.Node) (json.RawMessage, error)) (json.RawMessage, error) {
	switch node.Kind {
	case yaml.MappingNode:
		return encodeMapping(node, text)
	case yaml.SequenceNode:
		list := make([]json.RawMessage, len(node.Content))
		for i, item := range node.Content {
			var err error
			if list[i], err = encodeYAML(item, text); err != nil {
				return nil, err
			}
		}
		return episode.JSON(list)
	}
	switch tag := node.ShortTag(); tag {
	case "!!str", jsonTag:
		return text(node)
	case "!!timestamp":
		return episode.JSON(node.Value) // a date stays as written
	case "!!null":
		return json.RawMessage("null"), nil
	case "!!bool":
		var value bool
		if err := node.Decode(&value); err != nil {
			return nil, err
		}
		return episode.JSON(value)
	case "!!int", "!!float":
		if number := json.RawMessage(node.Value); kindOf(number) == "a number" && json.Valid(number) {
			return number, nil
		}
		return nil, fmt.Errorf("line %d: the number %s has more than one reading; write it in plain decimals, or in quotes", node.Line, node.Value)
	default:
		return nil, fmt.Errorf("line %d: unknown tag %s", node.Line, tag)
	}
}

func encodeMapping(node *yaml.Node, text func(*yaml.Node) (json.RawMessage, error)) (json.RawMessage, error) {
	var list []member
	seen := map[string]bool{}
	for key, value := range entries(node) {
		if key.Kind != yaml.ScalarNode || key.ShortTag() == jsonTag {
			return nil, fmt.Errorf("line %d: a key must be plain text", key.Line)
		}
		name, err := text(key)
		if err != nil {
			return nil, err
		}
		if seen[string(name)] {
			return nil, fmt.Errorf("line %d: the key %s is there twice", key.Line, name)
		}
		seen[string(name)] = true
		encoded, err := encodeYAML(value, text)
		if err != nil {
			return nil, err
		}
		list = append(list, member{Name: keyText(name), Value: encoded})
	}
	return episode.Object(list), nil
}
