package reward

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fenced finds blocks of code in Markdown.
var fenced = regexp.MustCompile("(?s)```[\\w-]*[ \t\r]*\n(.*?)\n?[ \t]*```")

// jsonIn finds the JSON value of an answer: all of it, the last block of code that is one, or the last object or list in its text.
func jsonIn(answer string) (any, error) {
	value, err := parseJSON(answer)
	if err == nil || errors.Is(err, errNumber) {
		return value, err
	}
	for _, block := range slices.Backward(fenced.FindAllStringSubmatch(answer, -1)) {
		if value, err := parseJSON(block[1]); err == nil || errors.Is(err, errNumber) {
			return value, err
		}
	}
	last := ""
	// What begins like a value and is none costs another look at what follows, so these looks are bounded.
	for at, looks := 0, 0; looks < 1000; {
		next := strings.IndexAny(answer[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		decoder := json.NewDecoder(strings.NewReader(answer[at:]))
		var found json.RawMessage
		if decoder.Decode(&found) == nil {
			last, at = string(found), at+int(decoder.InputOffset())
		} else {
			at, looks = at+1, looks+1
		}
	}
	if last == "" {
		return nil, errors.New("it has no JSON")
	}
	return parseJSON(last)
}

// errNumber refuses a number that no program computes with, and whose digits would fill the memory.
var errNumber = errors.New("it has a number out of range")

// parseJSON takes one value, with numbers as they are written.
func parseJSON(text string) (any, error) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil && !inRange(value) {
		err = errNumber
	}
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return value, nil
}

func inRange(value any) bool {
	switch value := value.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(value)), "e")
		power, err := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
		return len(value) <= 400 && (exponent == "" || err == nil && -400 <= power && power <= 400)
	case []any:
		return !slices.ContainsFunc(value, func(each any) bool { return !inRange(each) })
	case map[string]any:
		for _, each := range value {
			if !inRange(each) {
				return false
			}
		}
	}
	return true
}

// equalAt compares what is at a place of a value: a JSON pointer, or names and numbers with dots between them.
func equalAt(value any, place string, raw json.RawMessage) error {
	want, err := parseJSON(string(raw))
	if err != nil {
		return fmt.Errorf("equal %q: %w", place, err)
	}
	got := value
	for _, key := range steps(place) {
		found := false
		switch within := got.(type) {
		case map[string]any:
			got, found = within[key]
		case []any:
			if i, err := strconv.Atoi(key); err == nil && 0 <= i && i < len(within) {
				got, found = within[i], true
			}
		}
		if !found {
			return fmt.Errorf("it has nothing at %q", place)
		}
	}
	if !equal(got, want) {
		shown, _ := json.Marshal(got) // as it was read
		return fmt.Errorf("%s is at %q, want %s", clip(string(shown)), place, clip(string(raw)))
	}
	return nil
}

// steps are the keys of a place; none for the whole value.
func steps(place string) []string {
	pointer, is := strings.CutPrefix(place, "/")
	switch {
	case place == "":
		return nil
	case !is:
		return strings.Split(place, ".")
	}
	keys := strings.Split(pointer, "/")
	for i, key := range keys {
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
	}
	return keys
}

// equal compares two values, and numbers by what they are: 1 is 1.0.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		other, is := b.(json.Number)
		x, fine := new(big.Rat).SetString(string(a))
		y, too := new(big.Rat).SetString(string(other))
		return is && fine && too && x.Cmp(y) == 0
	case []any:
		other, is := b.([]any)
		return is && slices.EqualFunc(a, other, equal)
	case map[string]any:
		other, is := b.(map[string]any)
		for key, each := range a {
			value, has := other[key]
			is = is && has && equal(each, value)
		}
		return is && len(a) == len(other)
	}
	return a == b
}
