package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// difference is a field in which two requests differ, with what each has there. The zero value is none.
type difference struct{ field, recorded, now string }

// firstDifference looks at the short fields, then at the messages, then at the tools.
func firstDifference(was, now Request) difference {
	return cmp.Or(differ("", value(was.Fields), value(now.Fields)), differ("messages", value(was.Messages), value(now.Messages)),
		differ("tools", value(was.Tools), value(now.Tools)))
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

// differ finds the first place below path in which two values differ.
func differ(path string, was, now any) (d difference) {
	switch a := was.(type) {
	case map[string]any:
		b, ok := now.(map[string]any)
		if !ok {
			break
		}
		all := maps.Clone(a)
		maps.Copy(all, b)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if d = differ(strings.TrimPrefix(path+"."+name, "."), member(a, name), member(b, name)); d.field != "" {
				break
			}
		}
		return d
	case []any:
		b, ok := now.([]any)
		if !ok {
			break
		}
		for i := range max(len(a), len(b)) {
			if d = differ(fmt.Sprintf("%s[%d]", path, i), item(a, i), item(b, i)); d.field != "" {
				break
			}
		}
		return d
	}
	if !reflect.DeepEqual(was, now) {
		d.field = path
		d.recorded, d.now = excerpts(was, now)
	}
	return d
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
