package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	maxSchema = 64 << 10
	maxDepth  = 32
)

// parameters makes the schema of a tool's arguments out of what a server sent: its root is an object, its references stay within
// it. The error is why the tool is refused.
func parameters(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes; at most %d", len(raw), maxSchema)
	}
	given := bytes.TrimSpace(raw)
	if len(given) == 0 || string(given) == "null" || string(given) == "true" || string(given) == "{}" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	if given[0] != '{' {
		return nil, errors.New("its schema is not one of an object")
	}
	var root struct {
		Type any    `json:"type"`
		Ref  string `json:"$ref"`
	}
	if err := json.Unmarshal(given, &root); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	if root.Type != nil && root.Type != "object" {
		return nil, errors.New("its schema is not one of an object")
	}
	var plain bytes.Buffer
	decoder := json.NewDecoder(bytes.NewReader(given))
	decoder.UseNumber()
	if err := rewrite(&plain, decoder, root.Type == nil && root.Ref == "", keywords, 0); err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	return plain.Bytes(), nil
}

// What the keys of an object in a schema are.
type keys int

const (
	keywords keys = iota
	names         // of properties
	data          // of a value, such as a default
)

// inside are the kinds of objects that stand under a keyword.
var inside = map[string]keys{
	"properties": names, "$defs": names, "definitions": names, "patternProperties": names, "dependentSchemas": names,
	"default": data, "const": data, "enum": data, "examples": data,
}

// rewrite copies a value without the keywords that mean nothing to a model.
func rewrite(to *bytes.Buffer, from *json.Decoder, addType bool, are keys, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	token, err := from.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		to.WriteByte('[')
		for i := 0; from.More(); i++ {
			if i > 0 {
				to.WriteByte(',')
			}
			if err := rewrite(to, from, false, are, depth+1); err != nil {
				return err
			}
		}
		to.WriteByte(']')
	case json.Delim('{'):
		to.WriteByte('{')
		wrote := false
		if addType {
			to.WriteString(`"type":"object"`)
			wrote = true
		}
		for from.More() {
			key, err := from.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			var value bytes.Buffer
			inner := are
			if are == keywords {
				inner = inside[name]
			} else if are == names {
				inner = keywords
			}
			if err := rewrite(&value, from, false, inner, depth+1); err != nil {
				return err
			}
			if are == keywords && (name == "$schema" || name == "$id" || strings.HasPrefix(name, "x-")) {
				continue
			}
			if are == keywords && name == "$ref" && !strings.HasPrefix(value.String(), `"#`) {
				return fmt.Errorf("the reference %s leads out of it", value.String())
			}
			if wrote {
				to.WriteByte(',')
			}
			wrote = true
			to.Write(encoded(name))
			to.WriteByte(':')
			to.Write(value.Bytes())
		}
		to.WriteByte('}')
	default:
		to.Write(encoded(token))
		return nil
	}
	_, err = from.Token() // the end
	return err
}
