package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// firstDifference names the first field in which two requests differ, with what each has there, or nothing when they
// say the same. The short fields come first, then the messages, then the tools.
func firstDifference(was, now Request) (field, recorded, present string) {
	if field, recorded, present = differ("", value(was.Fields), value(now.Fields)); field != "" {
		return field, recorded, present
	}
	if field, recorded, present = differ("messages", value(was.Messages), value(now.Messages)); field != "" {
		return field, recorded, present
	}
	return differ("tools", value(was.Tools), value(now.Tools))
}

// nothing stands for what is not there.
type nothing struct{}

// value reads JSON. What is none is compared as the text that it is.
func value(text []byte) any {
	if len(text) == 0 {
		return nothing{}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return string(text)
	}
	return v
}

// differ names the first place below path in which two values differ, with what each has there.
func differ(path string, was, now any) (field, recorded, present string) {
	switch a := was.(type) {
	case map[string]any:
		b, ok := now.(map[string]any)
		if !ok {
			break
		}
		all := maps.Clone(a)
		maps.Copy(all, b)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			inner := strings.TrimPrefix(path+"."+name, ".")
			if field, recorded, present = differ(inner, member(a, name), member(b, name)); field != "" {
				return field, recorded, present
			}
		}
		return "", "", ""
	case []any:
		b, ok := now.([]any)
		if !ok {
			break
		}
		for i := range max(len(a), len(b)) {
			if field, recorded, present = differ(fmt.Sprintf("%s[%d]", path, i), item(a, i), item(b, i)); field != "" {
				return field, recorded, present
			}
		}
		return "", "", ""
	}
	if reflect.DeepEqual(was, now) {
		return "", "", ""
	}
	recorded, present = excerpts(was, now)
	return path, recorded, present
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nothing{}
}

func member(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return nothing{}
}

// shown is a value as JSON, and a text as itself.
func shown(v any) string {
	switch v := v.(type) {
	case nothing:
		return ""
	case string:
		return v
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// excerpts quotes both from shortly before the place where they part.
func excerpts(recorded, present any) (a, b string) {
	const before, length = 24, 80
	was, now := shown(recorded), shown(present)
	part := 0
	for part < len(was) && part < len(now) && was[part] == now[part] {
		part++
	}
	start := max(part-before, 0)
	for start > 0 && !utf8.RuneStart(was[min(start, len(was)-1)]) {
		start--
	}
	a, b = excerpt(was, start, length), excerpt(now, start, length)
	if recorded == any(nothing{}) {
		a = "nothing"
	}
	if present == any(nothing{}) {
		b = "nothing"
	}
	return a, b
}

func excerpt(s string, start, length int) string {
	start = min(start, len(s))
	end := min(start+length, len(s))
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	text := s[start:end]
	if start > 0 {
		text = "…" + text
	}
	if end < len(s) {
		text += "…"
	}
	return quote(text)
}

// quote leaves what people can read as it is.
func quote(s string) string { return strconv.QuoteToGraphic(s) }
