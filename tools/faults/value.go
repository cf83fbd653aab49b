package faults

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"trajgen/pipeline/episode"
)

// wrongType gives one value another type.
func wrongType(s *strike, result string) (string, bool) {
	var can []leaf
	for _, l := range leaves(result) {
		if l.depth > 0 && l.kind != 'n' && l.kind != '{' {
			can = append(can, l)
		}
	}
	if len(can) == 0 {
		return "", false
	}
	l := can[s.rand.IntN(len(can))]
	was, is := result[l.start:l.end], "null"
	switch l.kind {
	case '0', 't':
		is = quoted(l.text)
	case '[':
		var b strings.Builder
		b.WriteString("{")
		for i, each := range items(result, l) {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(quoted(strconv.Itoa(i)) + ":" + each)
		}
		is = b.String() + "}"
	}
	s.Planted.Target = &episode.PlantedTarget{Pointer: l.pointer, True: was, Wrong: is}
	return l.with(result, is), true
}

// items are the elements of a list.
func items(text string, list leaf) (all []string) {
	for _, l := range leaves(text) {
		if l.depth == list.depth+1 && strings.HasPrefix(l.pointer, list.pointer+"/") && l.start > list.start && l.end < list.end {
			all = append(all, text[l.start:l.end])
		}
	}
	return all
}

// tokens are what a wrong value can replace in a text: dates, numbers, identifiers with a digit.
var tokens = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}\b|-?\b\d+(?:\.\d+)?\b|\b[A-Za-z]+[-_]?\d[\w-]*\b`)

// candidate is a value, or a token in a text, that can be wrong.
type candidate struct {
	leaf
	token      string
	begin, end int // of the token in the text of a string
}

// wrongValue replaces one value by a plausible other one. Neither stands anywhere that the agent has seen.
func wrongValue(s *strike, result string) (string, bool) {
	var earlier []string
	for _, c := range s.before() {
		earlier = append(earlier, c.Result)
	}
	seen := func(text string) bool {
		has := func(in string) bool { return strings.Contains(in, text) }
		return slices.ContainsFunc(s.planter.known, has) || slices.ContainsFunc(earlier, has) || has(string(s.call.Trace.Arguments))
	}
	main, _ := s.payload(result, `"`)
	var can, beside []candidate
	for _, l := range leaves(result) {
		for _, c := range l.candidates() {
			switch {
			case len(c.token) < 2 || len(c.token) > 64 || seen(c.token):
			case l.pointer == main.pointer:
				can = append(can, c)
			case !counts(l.key) && l.kind != 't': // what the harness counts is not what the tool says
				beside = append(beside, c)
			}
		}
	}
	if len(can) == 0 {
		can = beside
	}
	for range 8 {
		if len(can) == 0 {
			return "", false
		}
		at := s.rand.IntN(len(can))
		c := can[at]
		wrong := s.other(c.token)
		if wrong == "" || wrong == c.token || seen(wrong) || strings.Contains(result, wrong) {
			can = slices.Delete(can, at, at+1)
			continue
		}
		s.Planted.Target = &episode.PlantedTarget{Pointer: c.pointer, True: c.token, Wrong: wrong}
		if c.kind == '"' {
			return c.withString(result, c.text[:c.begin]+wrong+c.text[c.end:]), true
		}
		return c.with(result, wrong), true
	}
	return "", false
}

// candidates are the value, or what its text has.
func (l leaf) candidates() (all []candidate) {
	switch l.kind {
	case '0':
		return []candidate{{leaf: l, token: l.text}}
	case '"':
		for _, at := range tokens.FindAllStringIndex(l.text, 1000) {
			all = append(all, candidate{l, l.text[at[0]:at[1]], at[0], at[1]})
		}
	}
	return all
}

// other is a value of the same kind and length; "" if there is none.
func (s *strike) other(token string) string {
	if day, err := time.Parse(time.DateOnly, token); err == nil {
		return day.AddDate(0, 0, 1+s.rand.IntN(28)).Format(time.DateOnly)
	}
	if _, err := strconv.ParseFloat(token, 64); err == nil {
		return s.otherDigits(token)
	}
	chars := []byte(token)
	for range 20 { // two characters that are exchanged
		i := s.rand.IntN(len(chars) - 1)
		if j := i + 1; chars[i] != chars[j] && alphanumeric(chars[i]) && alphanumeric(chars[j]) {
			chars[i], chars[j] = chars[j], chars[i]
			return string(chars)
		}
	}
	return ""
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// otherDigits changes digits of a text, but makes none a leading zero.
func (s *strike) otherDigits(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c >= '1' && c <= '9' && (len(b) < 4 || s.rand.IntN(2) == 0) {
			b[i] = '1' + (c-'1'+1+byte(s.rand.IntN(8)))%9
		}
	}
	return string(b)
}
