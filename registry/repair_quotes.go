package registry

import (
	"slices"
	"strings"
)

// unescaped reads an object in whose texts quotes are not escaped. Where a text ends, the names of the tool's arguments
// tell: each of them that stands there as JSON has it is taken for a name, and so a text never runs on into the next.
func (r *repairer) unescaped(n []string) (value, error) {
	v := value{kind: kindObject}
	body := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(r.text), "```"))
	body, ended := strings.CutSuffix(body, "}")
	places := namesIn(body, n)
	if !ended || len(places) == 0 || strings.TrimSpace(body[1:places[0].start]) != "" {
		return v, errUnclear
	}
	for i, place := range places {
		end := len(body)
		if i+1 < len(places) {
			end = places[i+1].start
		}
		said, comma := strings.CutSuffix(strings.TrimSpace(body[place.end:end]), ",")
		if comma != (i+1 < len(places)) {
			return v, errUnclear
		}
		m := member{key: place.name, name: quote(place.name)}
		var err error
		if m.value, err = r.between(strings.TrimSpace(said)); err != nil {
			return v, err
		}
		if slices.ContainsFunc(v.members, func(other member) bool { return other.key == m.key }) {
			return v, errUnclear
		}
		v.members = append(v.members, m)
	}
	return v, nil
}

// between reads the value that stands between a name and the next.
func (r *repairer) between(said string) (value, error) {
	if said != "" && (said[0] == '"' || said[0] == '\'') {
		mark := said[:1]
		text, ended := strings.CutSuffix(said[1:], mark)
		if !ended || strings.HasPrefix(text, mark+mark) || !r.paired(text, mark[0]) {
			return value{}, errUnclear
		}
		return value{kind: kindString, text: r.spell(text, mark[0])}, nil
	}
	inner := repairer{text: said + " ", signs: r.signs}
	v, err := inner.value()
	if r.signs = inner.signs; err == nil && strings.TrimSpace(inner.text[inner.pos:]) != "" {
		err = errUnclear
	}
	return v, err
}

// paired tells whether the quotes inside of a text come in pairs, and none that begins a pair could be the text's end. In
// what people write they do; not in what was cut at a quote of its own, such as {"name": "x.
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
		if begins && mayEnd(text[at+1:], mark) {
			return false
		}
	}
	return !begins && q != quoting(mark)
}

// mayEnd tells whether what follows a quote could follow a member of an object: its end, or another member.
func mayEnd(rest string, mark byte) bool {
	rest = strings.TrimLeft(rest, " \t\r\n")
	if strings.HasPrefix(rest, "}") {
		return true
	}
	rest, comma := strings.CutPrefix(rest, ",")
	name, _ := nameAt(strings.TrimLeft(rest, " \t\r\n"), mark)
	return comma && name != ""
}

// namePlace is where a name and its colon stand.
type namePlace struct {
	name       string
	start, end int
}

// namesIn finds the names of a tool's arguments.
func namesIn(text string, n []string) []namePlace {
	var found []namePlace
	for at := 0; at < len(text); at++ {
		if text[at] != '"' && text[at] != '\'' {
			continue
		}
		if name, end := nameAt(text[at:], text[at]); name != "" && slices.Contains(n, name) {
			found = append(found, namePlace{name, at, at + end})
			at += end - 1
		}
	}
	return found
}

// maxName bounds how far a name is looked for.
const maxName = 128

// nameAt is the name in quotes, with a colon behind it, that a text begins with; "" when there is none.
func nameAt(text string, mark byte) (name string, end int) {
	if text == "" || text[0] != mark {
		return "", 0
	}
	length := strings.IndexAny(text[1:min(len(text), 1+maxName)], string(mark)+"\\\n")
	if length < 0 || text[1+length] != mark {
		return "", 0
	}
	rest, colon := strings.CutPrefix(strings.TrimLeft(text[length+2:], " \t\r\n"), ":")
	if !colon {
		return "", 0
	}
	return text[1 : 1+length], len(text) - len(rest)
}
