package datasets_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"trajgen/datasets"
)

// texts are JSON of every kind, and what is nearly so. Those before the empty one are objects with no key twice.
var texts = []string{
	`{}`, ` { } `[1:4], `{"a":1}`, `{"a": "b", "c": [1, {"d": null}, "e"], "f": true, "g": false, "h": null}`,
	`{"n": [0, -0, 1.5, -2e10, 3E+2, 4e-2, 12345678901234567890]}`, "{\"a\"\t:\r\n1 ,\n\"b\":2}",
	`{"short": "\"\\\/\b\f\n\r\t", "wide": "\u0041\u00e9\u2028\uD83D\ude00", "alone": "\ud800 \udc00 \ud800\u0041"}`,
	`{"é": "über", "\u00e9t": "\u0000", "line": "` + "\u2028\u2029\x7f" + `", "<&>": "<&>"}`,
	`{"long": "` + strings.Repeat("seven77", 9) + `\n` + strings.Repeat("x", 5000) + `\u0020"}`,
	`{"z": {"b": null, "a": [null, {"c": null}], "": {}}, "y": []}`, `{"\u0061": 1, "b": {"k": 1, "j": "\/"}}`,
	"",
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":2}}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":-}`, `{"a":1e}`, `{"a":+1}`,
	`{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12"}`, `{"a":"` + "\n" + `"}`, `{"a":"` + "\x00" + `"}`, `{"a":"b`, `{"a":"\`, `{"a":"\"}`,
	`{"a":tru}`, `{"a":nul1}`, `{"a":}`, `{"a"}`, `{a:1}`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":1}}`, `{"a":1} x`, `[1]`, `"a"`, `1`,
	"{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", `{"a":1]`, `{"a":[1}`, `{`, `{"`, "{\"a\":1\v}", "{\u00a0}",
	`{"deep":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`,
}

// TestSplit holds that objects are taken apart as encoding/json would.
func TestSplit(t *testing.T) {
	plain := true
	for _, text := range texts {
		if text == "" {
			plain = false
			continue
		}
		if ok := sameAsStandard(t, text); ok != plain && text != `{"a":{"b":1,"b":2}}` && !strings.HasPrefix(text, `{"deep"`) {
			t.Errorf("%.80q is taken apart: %t, want %t", text, ok, plain)
		}
	}
	wide := "{"
	for n := range 5000 {
		wide += `"` + strconv.Itoa(n) + `":` + strconv.Itoa(n) + ","
	}
	if !sameAsStandard(t, wide+`"last":null}`) || sameAsStandard(t, wide+`"17":null}`) {
		t.Error("of many entries one that is there twice is not told from one that is not")
	}
}

// FuzzSplit looks for text that is taken apart otherwise than encoding/json would.
func FuzzSplit(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { sameAsStandard(t, text) })
}

// sameAsStandard says whether a text is an object without a key that is there twice, and compares what came of it.
func sameAsStandard(t *testing.T, text string) bool {
	t.Helper()
	if datasets.NotObject([]byte(text)) != "" {
		return false
	}
	if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
		t.Fatalf("%q is taken, which is not JSON text", text)
	}
	list, err := datasets.Members(json.RawMessage(text))
	if err != nil {
		return false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	_, _ = decoder.Token()
	seen := map[string]bool{}
	for decoder.More() {
		name, _ := decoder.Token()
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		if seen[name.(string)] {
			t.Fatalf("%q has %q twice", text, name)
		}
		seen[name.(string)] = true
		if string(value) == "null" {
			continue
		}
		if len(list) == 0 || list[0].Name != name || !bytes.Equal(list[0].Value, value) {
			t.Fatalf("%q: got %v, want %q: %s next", text, list, name, value)
		}
		sameItems(t, value)
		list = list[1:]
	}
	if len(list) > 0 {
		t.Fatalf("%q: %d entries too many", text, len(list))
	}
	sameCanonical(t, text)
	return true
}

// sameItems compares lists and strings.
func sameItems(t *testing.T, value json.RawMessage) {
	t.Helper()
	if items, err := datasets.Elements(value); err == nil {
		var want []json.RawMessage
		if err := json.Unmarshal(value, &want); err != nil || len(items) != len(want) {
			t.Fatalf("%s: %d items, want %d, %v", value, len(items), len(want), err)
		}
		for i := range want {
			if !bytes.Equal(items[i], want[i]) {
				t.Fatalf("%s: item %d is %s, want %s", value, i, items[i], want[i])
			}
			sameItems(t, want[i])
		}
	}
	if got, ok := datasets.AsString(value); ok {
		var want string
		if err := json.Unmarshal(value, &want); err != nil || got != want {
			t.Fatalf("%s is %q, want %q, %v", value, got, want, err)
		}
	}
}

// sameCanonical compares the form whose hash names a row.
func sameCanonical(t *testing.T, text string) {
	t.Helper()
	for _, nulls := range []bool{true, false} {
		list, err := datasets.Members(json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		got := datasets.Object(list, nulls)
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var values map[string]any
		if err := decoder.Decode(&values); err != nil {
			t.Fatal(err)
		}
		for name, value := range values {
			if value == nil {
				delete(values, name)
			} else if !nulls {
				values[name] = filled(value)
			}
		}
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(values); err != nil || string(got)+"\n" != want.String() {
			t.Fatalf("%q (nulls %t): got %s, want %s, %v", text, nulls, got, want.String(), err)
		}
	}
}

// filled drops what is null in objects at every depth.
func filled(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if value[name] = filled(inner); inner == nil {
				delete(value, name)
			}
		}
	case []any:
		for i := range value {
			value[i] = filled(value[i])
		}
	}
	return value
}
