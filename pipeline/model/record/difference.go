package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// firstDifference names the first field in which two requests differ, with what each has there, or nothing when they
// say the same. The short fields come first, then the messages, then the tools.
func firstDifference(was, now Request) (field, recorded, present string) {
	d := &difference{}
	d.object("", value(was.Fields), value(now.Fields))
	d.compare("messages", value(was.Messages), value(now.Messages))
	d.compare("tools", value(was.Tools), value(now.Tools))
	return d.field, d.was, d.now
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

// difference is the first that was found.
type difference struct{ field, was, now string }

func (d *difference) compare(path string, was, now any) {
	if d.field != "" {
		return
	}
	switch a := was.(type) {
	case map[string]any:
		if _, ok := now.(map[string]any); ok {
			d.object(path, was, now)
			return
		}
	case []any:
		if b, ok := now.([]any); ok {
			for i := range max(len(a), len(b)) {
				d.compare(fmt.Sprintf("%s[%d]", path, i), item(a, i), item(b, i))
			}
			return
		}
	default:
		switch now.(type) {
		case map[string]any, []any:
		default:
			if was == now {
				return
			}
		}
	}
	d.field = path
	d.was, d.now = excerpts(was, now)
}

func item(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nothing{}
}

func (d *difference) object(path string, was, now any) {
	a, _ := was.(map[string]any)
	b, _ := now.(map[string]any)
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		inner := name
		if path != "" {
			inner = path + "." + name
		}
		d.compare(inner, member(a, name), member(b, name))
	}
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
