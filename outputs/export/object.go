package export

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// object is a JSON object as it stands in a file, key by key. What is nil is left out.
type object []field

type field struct {
	key   string
	value any
}

// MarshalJSON writes the keys in their order.
func (o object) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte("null"), nil
	}
	text := []byte{'{'}
	for _, f := range o {
		if f.value == nil {
			continue
		}
		value, err := encode(f.value)
		if err != nil {
			return nil, err
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(text, quoted(f.key)...), ':')
		text = append(text, value...)
	}
	return append(text, '}'), nil
}

// some is a value of an object, or nil where it is empty.
func some(value any) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return nil
	}
	return value
}

// encodeLine is the JSON of a value with its line break. HTML characters stay as they are.
func encodeLine(value any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return buf.Bytes(), err
}

// encode is the JSON of a value.
func encode(value any) ([]byte, error) {
	if o, ok := value.(object); ok {
		return o.MarshalJSON()
	}
	line, err := encodeLine(value)
	return bytes.TrimSuffix(line, []byte("\n")), err
}

// quoted is the JSON of a text.
func quoted(text string) json.RawMessage {
	line, err := encode(text)
	if err != nil {
		panic(err)
	}
	return line
}
