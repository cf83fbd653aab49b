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

// some is a value of an object, or nil where it is empty.
func some(value any) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0 {
		return nil
	}
	return value
}

// MarshalJSON is for objects within other values.
func (o object) MarshalJSON() ([]byte, error) { return encode(o) }

// encodeLine is the JSON of a value with its line break. HTML characters stay as they are.
func encodeLine(value any) ([]byte, error) {
	text, err := encode(value)
	return append(text, '\n'), err
}

// encode is the JSON of a value.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	err := writeJSON(&buf, value)
	return buf.Bytes(), err
}

// writeJSON writes objects and lists of them itself, so that what is in them is encoded once.
func writeJSON(buf *bytes.Buffer, value any) error {
	switch value := value.(type) {
	case nil:
	case object:
		if value != nil {
			return value.write(buf)
		}
	case []object:
		buf.WriteByte('[')
		for i, o := range value {
			if i > 0 {
				buf.WriteByte(',')
			}
			if err := writeJSON(buf, o); err != nil {
				return err
			}
		}
		buf.WriteByte(']')
		return nil
	default:
		encoder := json.NewEncoder(buf)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(value)
		buf.Truncate(max(0, buf.Len()-1)) // the line break
		return err
	}
	buf.WriteString("null")
	return nil
}

func (o object) write(buf *bytes.Buffer) error {
	lead := byte('{')
	for _, f := range o {
		if f.value == nil {
			continue
		}
		buf.WriteByte(lead)
		lead = ','
		buf.Write(quoted(f.key))
		buf.WriteByte(':')
		if err := writeJSON(buf, f.value); err != nil {
			return err
		}
	}
	if lead == '{' {
		buf.WriteByte(lead)
	}
	buf.WriteByte('}')
	return nil
}

// quoted is the JSON of a text.
func quoted(text string) json.RawMessage {
	encoded, err := encode(text)
	if err != nil {
		panic(err)
	}
	return encoded
}
