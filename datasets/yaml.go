package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"go.yaml.in/yaml/v3"
)

// yamlFileRows reads a top-level list of tasks. YAML cannot be streamed, so the file is held in memory, at most maxRow
// of it: it is the form for tasks that are written by hand.
func yamlFileRows(path string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		data, err := readBounded(path)
		if err != nil {
			yield(row{}, fmt.Errorf("read dataset: %w", err))
			return
		}
		yamlRows(path, data)(yield)
	}
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxRow+1))
	if err == nil && len(data) > maxRow {
		err = fmt.Errorf("%s is larger than %d MiB; write large datasets as JSON Lines", path, maxRow>>20)
	}
	return data, err
}

func yamlRows(name string, data []byte) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		list, err := parseYAML(data)
		if err != nil {
			yield(row{}, fmt.Errorf("read dataset %s: %w", name, err))
			return
		}
		if list == nil {
			return // an empty file has no rows
		}
		if list.Kind != yaml.SequenceNode {
			yield(row{}, fmt.Errorf("read dataset %s: line %d: want a list of tasks (- id: ...)", name, list.Line))
			return
		}
		for _, node := range list.Content {
			r := row{file: name, line: node.Line}
			value, err := encodeYAML(node, plainText)
			switch {
			case err != nil:
				r.broken = err.Error()
			case node.Kind != yaml.MappingNode:
				r.broken = "the row is " + kindOf(value) + ", want a mapping such as {prompt: ...}"
			default:
				r.object = value
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// parseYAML returns the root of the only document, or nil when there is none.
func parseYAML(data []byte) (*yaml.Node, error) {
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
	return document.Content[0], nil
}

// plainText is the text of a string in a file of tasks.
func plainText(node *yaml.Node) (json.RawMessage, error) {
	if node.ShortTag() == jsonTag {
		return nil, fmt.Errorf("line %d: %s belongs in mapping files", node.Line, jsonTag)
	}
	return encode(node.Value)
}

// encodeYAML turns a node into JSON text, keys in their order. Strings, keys among them, and scalars tagged !json go
// through text. Whatever JSON has no word for, and whatever YAML would read in a surprising way, is refused.
func encodeYAML(node *yaml.Node, text func(*yaml.Node) (json.RawMessage, error)) (json.RawMessage, error) {
	switch node.Kind {
	case yaml.MappingNode:
		return encodeMapping(node, text)
	case yaml.SequenceNode:
		var buffer bytes.Buffer
		buffer.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				buffer.WriteByte(',')
			}
			value, err := encodeYAML(item, text)
			if err != nil {
				return nil, err
			}
			buffer.Write(value)
		}
		buffer.WriteByte(']')
		return buffer.Bytes(), nil
	case yaml.AliasNode:
		return nil, fmt.Errorf("line %d: anchors and aliases are not supported", node.Line)
	}
	switch tag := node.ShortTag(); tag {
	case "!!str", jsonTag:
		return text(node)
	case "!!timestamp":
		return encode(node.Value) // a date stays as it was written
	case "!!null":
		return json.RawMessage("null"), nil
	case "!!bool":
		var value bool
		if err := node.Decode(&value); err != nil {
			return nil, err
		}
		return encode(value)
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
	var buffer bytes.Buffer
	buffer.WriteByte('{')
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" || key.ShortTag() == jsonTag {
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
		value, err := encodeYAML(node.Content[i+1], text)
		if err != nil {
			return nil, err
		}
		if buffer.Len() > 1 {
			buffer.WriteByte(',')
		}
		buffer.Write(name)
		buffer.WriteByte(':')
		buffer.Write(value)
	}
	buffer.WriteByte('}')
	return buffer.Bytes(), nil
}
