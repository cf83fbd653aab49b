package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	gojson "github.com/goccy/go-json"

	"trajgen/pipeline/episode"
)

// The functions below parse text that json.Valid has accepted.

// member is one entry of a JSON object.
type member = episode.Member

// members splits an object into its entries, in their order. An entry that is null counts as absent; one that is there
// twice is an error, as it is unclear which was meant. Errors read well after "the row is" and after "verify:".
func members(object json.RawMessage) ([]member, error) {
	if kind := kindOf(object); kind != "an object" {
		return nil, fmt.Errorf("%s, want an object", kind)
	}
	list, err := episode.Members(object)
	seen := map[string]bool{}
	for _, m := range list {
		if seen[m.Name] {
			return nil, fmt.Errorf("an object with the key %q twice", m.Name)
		}
		seen[m.Name] = true
	}
	return slices.DeleteFunc(list, func(m member) bool { return isNull(m.Value) }), err
}

// canonical puts members together in the form that is hashed: keys sorted at every depth, no white space, numbers untouched;
// without what is null below the members, when nulls is false.
func canonical(list []member, nulls bool) json.RawMessage {
	values := make(map[string]any, len(list))
	for _, m := range list {
		values[m.Name] = decodeAny(m.Value)
		if !nulls {
			values[m.Name] = withoutNulls(values[m.Name])
		}
	}
	return episode.MustJSON(values)
}

// See episode.Members: decoders are made before goroutines ask for them.
func init() {
	_ = gojson.Unmarshal([]byte("[]"), new([]json.RawMessage))
	_ = gojson.Unmarshal([]byte(`""`), new(string))
}

// elements splits a list into its items.
func elements(list json.RawMessage) ([]json.RawMessage, error) {
	if kind := kindOf(list); kind != "a list" {
		return nil, fmt.Errorf("%s, want a list", kind)
	}
	var items []json.RawMessage
	err := gojson.Unmarshal(list, &items)
	return items, err
}

// structured looks through a string that holds a JSON object or list: columns of a table often do.
func structured(value json.RawMessage) json.RawMessage {
	text, ok := asString(value)
	if !ok {
		return value
	}
	inner := strings.TrimSpace(text)
	if !strings.HasPrefix(inner, "{") && !strings.HasPrefix(inner, "[") {
		return value
	}
	if raw := json.RawMessage(inner); json.Valid(raw) {
		return raw
	}
	return value
}

// kindOf names the kind of valid JSON text, for messages.
func kindOf(value json.RawMessage) string {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func isNull(value json.RawMessage) bool { return kindOf(value) == "null" }

func asString(value json.RawMessage) (string, bool) {
	if kindOf(value) != "a string" {
		return "", false
	}
	var text string
	err := gojson.Unmarshal(value, &text)
	return text, err == nil
}

// asText takes a string or a number, which is kept as it was written.
func asText(value json.RawMessage) (string, error) {
	if text, ok := asString(value); ok {
		return text, nil
	}
	if kindOf(value) == "a number" {
		return string(bytes.TrimSpace(value)), nil
	}
	return "", fmt.Errorf("%s, want a string", kindOf(value))
}

// asNumber takes a number, or a string that is one, as templates only make strings.
func asNumber(value json.RawMessage) (float64, error) {
	text, err := asText(value)
	if err != nil {
		return 0, fmt.Errorf("%s, want a number", kindOf(value))
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, fmt.Errorf("%q, want a finite number", text)
	}
	return number, nil
}

// asCount takes a whole number above zero.
func asCount(value json.RawMessage) (int, error) {
	number, err := asNumber(value)
	if err != nil {
		return 0, err
	}
	if number != math.Trunc(number) || number < 1 || number > 1<<53 {
		return 0, fmt.Errorf("%v, want a whole number above 0", number)
	}
	return int(number), nil
}

// asDuration takes seconds or Go's notation, above zero.
func asDuration(value json.RawMessage) (time.Duration, error) {
	if text, ok := asString(value); ok {
		if duration, err := time.ParseDuration(strings.TrimSpace(text)); err == nil && duration > 0 {
			return duration, nil
		}
	}
	seconds, err := asNumber(value)
	if err != nil || seconds <= 0 || seconds > math.MaxInt64/float64(time.Second)/2 || seconds < 1e-9 {
		return 0, fmt.Errorf(`%s, want seconds above 0 or a duration such as "2m30s"`, bytes.TrimSpace(value))
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// asNames takes a list of names, or one string with commas. Duplicates count once.
func asNames(value json.RawMessage) ([]string, error) { return asList(value, strings.TrimSpace) }

// asTags is asNames for a list whose texts stay as they are.
func asTags(value json.RawMessage) ([]string, error) {
	return asList(value, func(tag string) string { return tag })
}

func asList(value json.RawMessage, each func(string) string) ([]string, error) {
	value = structured(value)
	var parts []string
	if text, ok := asString(value); ok {
		for part := range strings.SplitSeq(text, ",") {
			parts = append(parts, strings.TrimSpace(part))
		}
	} else {
		items, err := elements(value)
		if err != nil {
			return nil, fmt.Errorf("%s, want a list of strings", kindOf(value))
		}
		for _, item := range items {
			text, err := asText(item)
			if err != nil {
				return nil, fmt.Errorf("a list with %w", err)
			}
			parts = append(parts, each(text))
		}
	}
	var list []string
	for _, part := range parts {
		if strings.TrimSpace(part) == "" {
			return nil, errors.New("a list with an empty string")
		}
		if !slices.Contains(list, part) {
			list = append(list, part)
		}
	}
	return list, nil
}

// decodeAny keeps numbers as they were written.
func decodeAny(value json.RawMessage) (decoded any) {
	if text, ok := asString(value); ok {
		return text // most of a row
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	_ = decoder.Decode(&decoded) // of valid JSON
	return decoded
}

// withoutNulls drops the entries of objects that are null, at every depth.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if inner == nil {
				delete(value, name)
				continue
			}
			value[name] = withoutNulls(inner)
		}
	case []any:
		for i, inner := range value {
			value[i] = withoutNulls(inner)
		}
	}
	return value
}

// keyText is a key of a map as an object has it.
func keyText(key json.RawMessage) string {
	if text, ok := asString(key); ok {
		return text
	}
	return string(key)
}

func utf8Text(text string) (json.RawMessage, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("invalid UTF-8 at byte %d", invalidUTF8([]byte(text))+1)
	}
	return episode.JSON(text)
}

func bytesOrText(raw []byte) (json.RawMessage, error) {
	if utf8.Valid(raw) {
		return episode.JSON(string(raw))
	}
	return episode.JSON(map[string][]byte{"base64": raw})
}
