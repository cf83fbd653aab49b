package registry

import (
	"regexp"
	"slices"
	"strings"
)

// byNames reads an object whose strings have unescaped quotes. The names of the tool's arguments show where a string ends: each of
// them that is quoted and has a colon is taken for a name, so that a string never continues into the next member.
func (r *repairer) byNames(names []string) error {
	body := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(r.text), "```"))
	body, ended := strings.CutSuffix(body, "}")
	places := places(body, names)
	if !ended || len(places) == 0 || strings.TrimSpace(body[1:places[0][0]]) != "" {
		return errUnclear
	}
	r.out.WriteByte('{')
	var had []string
	for i, place := range places {
		end := len(body)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		name := strings.TrimRight(body[place[0]:place[1]], " \t\r\n:")
		name = name[1 : len(name)-1]
		said, comma := strings.CutSuffix(strings.TrimSpace(body[place[1]:end]), ",")
		if comma != (i+1 < len(places)) || slices.Contains(had, name) {
			return errUnclear
		}
		had = append(had, name)
		if i > 0 {
			r.out.WriteByte(',')
		}
		r.out.WriteString(quote(name) + ":")
		if err := r.between(strings.TrimSpace(said)); err != nil {
			return err
		}
	}
	r.out.WriteByte('}')
	return nil
}

// places finds names with the quotes around them and the colon behind.
func places(text string, names []string) [][]int {
	var either []string
	for _, name := range names {
		name = regexp.QuoteMeta(name)
		either = append(either, `"`+name+`"`, `'`+name+`'`)
	}
	if either == nil {
		return nil
	}
	return regexp.MustCompile(`(?:`+strings.Join(either, "|")+`)[ \t\r\n]*:`).FindAllStringIndex(text, -1)
}

// between reads the value that stands between a name and the next.
func (r *repairer) between(said string) error {
	if said != "" && (said[0] == '"' || said[0] == '\'') {
		mark := said[:1]
		text, ended := strings.CutSuffix(said[1:], mark)
		if !ended || strings.HasPrefix(text, mark+mark) || !r.paired(text, mark[0]) {
			return errUnclear
		}
		r.out.WriteString(r.spell(text, mark[0]))
		return nil
	}
	inner := repairer{text: said + " ", signs: r.signs}
	err := inner.value()
	if r.signs = inner.signs; err == nil && strings.TrimSpace(inner.text[inner.pos:]) != "" {
		err = errUnclear
	}
	r.out.WriteString(inner.out.String())
	return err
}

// mayEnd matches what can follow the last quote of an object's member: the object's end, or another member.
var mayEnd = map[byte]*regexp.Regexp{
	'"':  regexp.MustCompile(`^[ \t\r\n]*(?:\}|,[ \t\r\n]*"[^"\\\n]{1,128}"[ \t\r\n]*:)`),
	'\'': regexp.MustCompile(`^[ \t\r\n]*(?:\}|,[ \t\r\n]*'[^'\\\n]{1,128}'[ \t\r\n]*:)`),
}

// paired reports whether the quotes within a string come in pairs, none of whose first quotes could be the string's end. In normal
// text they do, but not in a string that was cut at one of its own quotes, such as {"name": "x.
func (r *repairer) paired(text string, mark byte) bool {
	begins, q := false, quoting(0)
	for at := 0; at < len(text); at++ {
		escaped := text[at] == '\\'
		if escaped {
			if at++; at == len(text) {
				return false // the last quote is escaped
			}
		}
		q.step(text, at)
		if text[at] != mark || isApostrophe(text, at) {
			continue
		}
		if begins = !begins; escaped {
			continue
		}
		r.signs.bare = true
		if begins && mayEnd[mark].MatchString(text[at+1:]) {
			return false
		}
	}
	return !begins && q != quoting(mark)
}
