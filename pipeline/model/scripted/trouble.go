package scripted

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// loud reports whether a result says that something is wrong, other than the right one says.
func loud(result, right string) bool {
	var is, want map[string]any
	if json.Unmarshal([]byte(result), &is) != nil {
		return json.Unmarshal([]byte(right), &want) == nil // broken off
	}
	_ = json.Unmarshal([]byte(right), &want)
	fails := func(of map[string]any) (string, float64) {
		message, _ := of["error"].(string)
		code, _ := of["exit_code"].(float64)
		return message, code
	}
	message, code := fails(is)
	wantMessage, wantCode := fails(want)
	_, cut := is["head"]
	_, wantCut := want["head"]
	return message != "" && message != wantMessage || code != 0 && code != wantCode || is["truncated"] == true && cut && !wantCut ||
		slices.ContainsFunc(slices.Collect(maps.Keys(is)), func(key string) bool { return unreadable(is[key], want[key]) })
}

// unreadable reports whether a text is not JSON that should be, or is the page of a web server in trouble.
func unreadable(is, want any) bool {
	text, ok := is.(string)
	right, _ := want.(string)
	if !ok || text == right {
		return false
	}
	document := strings.HasPrefix(strings.TrimSpace(right), "{") || strings.HasPrefix(strings.TrimSpace(right), "[")
	return document && text != "" && json.Valid([]byte(right)) && !json.Valid([]byte(text)) || strings.HasPrefix(text, "<html>") && strings.Contains(text, "<h1>50")
}

// swap is a value and the wrong one that stands for it.
type swap struct{ right, wrong string }

// maxValue is the length of the longest value that is copied.
const maxValue = 64

// believe takes what differs in a result for true, if it is one word or number.
func (m *meeting) believe(right, got string) {
	from, end := 0, 0
	for from < min(len(right), len(got)) && right[from] == got[from] {
		from++
	}
	for end < min(len(right), len(got))-from && right[len(right)-1-end] == got[len(got)-1-end] {
		end++
	}
	for from > 0 && (joined(right, from) || joined(got, from)) {
		from--
	}
	for end > 0 && (joined(right, len(right)-end) || joined(got, len(got)-end)) {
		end--
	}
	s := swap{right[from : len(right)-end], got[from : len(got)-end]}
	word := func(text string) bool {
		return text != "" && len(text) <= maxValue && !strings.ContainsFunc(text, func(r rune) bool { return r != '-' && r != '.' && r != '+' && !inWord(r) })
	}
	if s.right != s.wrong && word(s.right) && word(s.wrong) {
		m.believed = append(m.believed, s)
	}
}

// copied is a turn as it comes from one who believes wrong values.
func (m *meeting) copied(t turn) turn {
	t.calls = slices.Clone(t.calls)
	for _, s := range m.believed {
		t.content = s.in(t.content)
		for i := range t.calls {
			t.calls[i].args = s.in(t.calls[i].args)
		}
	}
	return t
}

// in replaces a value where it stands as a whole, in a text or within JSON.
func (s swap) in(text string) string {
	var b strings.Builder
	done := 0
	for from := 0; ; {
		at := strings.Index(text[from:], s.right)
		if at < 0 {
			return b.String() + text[done:]
		}
		at += from
		from = at + 1
		if end := at + len(s.right); !joined(text, at) && !joined(text, end) {
			b.WriteString(text[done:at] + s.wrong)
			done, from = end, end
		}
	}
}

// joined reports whether the characters on both sides of a place belong to one word, number or date.
func joined(text string, at int) bool {
	left, size := utf8.DecodeLastRuneInString(text[:at])
	right, next := utf8.DecodeRuneInString(text[at:])
	switch {
	case size == 0 || next == 0 || escaped(text[:at]):
		return false
	case inWord(left) && inWord(right):
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at-size])
	after, _ := utf8.DecodeRuneInString(text[at+next:])
	link := func(a, mark, b rune) bool {
		return mark == '-' && inWord(a) && inWord(b) || mark == '.' && digit(a) && digit(b)
	}
	return link(before, left, right) && !escaped(text[:at-size]) || link(left, right, after)
}

// escaped reports whether a JSON text ends with an escape such as \n, whose letter is in no word.
func escaped(text string) bool {
	if text == "" || !strings.ContainsAny(text[len(text)-1:], `bfnrt`) {
		return false
	}
	rest := strings.TrimRight(text[:len(text)-1], `\`)
	return (len(text)-1-len(rest))%2 == 1
}

func digit(r rune) bool { return r >= '0' && r <= '9' }

func inWord(r rune) bool {
	return digit(r) || r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= utf8.RuneSelf && r != utf8.RuneError
}
