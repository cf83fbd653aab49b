package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Why a text that is no JSON is not repaired, in words that tell the model what to write instead.
var (
	errCutOff  = errors.New("that is whole (this one ends too early; write what is long in several calls)")
	errSeveral = errors.New("and nothing else (make a call of its own for each object)")
	errUnclear = errors.New(`(inside of texts write a quote as \", a line end as \n and a backslash as \\)`)
)

// maxRepairDepth is how deep what is repaired may be nested.
const maxRepairDepth = 200

// repair reads JSON with the slips that models make, beginning at the first bracket of that kind: single and curly
// quotes, names without quotes, comments, the literals of Python, raw control characters, quotes inside of texts that
// are not escaped, missing commas and a trailing one, missing and further closing brackets, words around it.
//
// It is exact or refused. A text that can be read in two ways is refused, and so is one that stops inside of a value,
// that has a name twice, or that has one which the schema does not know where it knows names: the most likely reading
// of somebody's file is still half a file when it is wrong.
func repair(text string, open byte, names []string) (string, error) {
	v, err := repairValue(text, open, names)
	return string(v.append(nil)), err
}

func repairValue(text string, open byte, n []string) (value, error) {
	start := strings.IndexByte(text, open)
	if start < 0 || strings.ContainsAny(text[:start], "{[") {
		return value{}, errUnclear
	}
	text = text[start:]
	if strings.HasPrefix(strings.TrimLeft(text[1:], " \t\r\n"), `\`) {
		return repairEscaped(text, open, n)
	}
	r := repairer{text: text}
	v, err := r.twice(r.whole)
	if err != nil && err != errSeveral {
		quoted := repairer{text: text}
		if other, unclear := quoted.twice(func() (value, error) { return quoted.unescaped(n) }); unclear == nil {
			v, err = other, nil
		}
	}
	if err != nil {
		return value{}, err
	}
	return v, nil
}

// repairEscaped reads what stands as it would inside a string: {\"path\":\"a\"}.
func repairEscaped(text string, open byte, n []string) (value, error) {
	var inner string
	if json.Unmarshal([]byte(`"`+text+`"`), &inner) != nil || len(inner) >= len(text) {
		return value{}, errUnclear
	}
	return repairValue(inner, open, n)
}

type repairer struct {
	text  string
	pos   int
	open  []byte // the brackets that are open
	signs signs
}

// twice reads a text a second time, when the first has shown how its backslashes are meant.
func (r *repairer) twice(read func() (value, error)) (value, error) {
	v, err := read()
	if err == nil {
		err = r.signs.settle()
	}
	if err != nil {
		return v, err
	}
	r.pos = 0
	return read()
}

// whole reads a value in which each quote begins or ends a string, and what may stand behind it.
func (r *repairer) whole() (value, error) {
	v, err := r.value()
	rest := strings.TrimLeft(r.text[r.pos:], "}]")
	if err == nil && (strings.ContainsAny(rest, `{["`) || rest != "" && strings.IndexByte(" \t\r\n`<", rest[0]) < 0) {
		err = errSeveral
	}
	return v, err
}

// space skips white space and comments, and returns the byte behind them, 0 at the end.
func (r *repairer) space() byte {
	for r.pos < len(r.text) {
		rest := r.text[r.pos:]
		ends := ""
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			r.pos++
			continue
		case strings.HasPrefix(rest, "/*"):
			ends = "*/"
		case strings.HasPrefix(rest, "//"), rest[0] == '#':
			ends = "\n"
		default:
			return rest[0]
		}
		comment, _, ended := strings.Cut(rest, ends)
		if !ended || strings.Contains(comment, `"`) {
			return rest[0] // it may hide an argument
		}
		r.pos += len(comment) + len(ends)
	}
	return 0
}

func (r *repairer) value() (value, error) {
	switch c := r.space(); {
	case r.pos == len(r.text):
		return value{}, errCutOff
	case c == '{' || c == '[':
		v := value{kind: kindObject}
		if c == '[' {
			v.kind = kindArray
		}
		if len(r.open) == maxRepairDepth {
			return v, errUnclear
		}
		r.open = append(r.open, c)
		r.pos++
		err := r.fill(&v)
		r.open = r.open[:len(r.open)-1]
		return v, err
	case markAt(r.text[r.pos:]) != mark{}:
		text, err := r.string()
		return value{kind: kindString, text: text}, err
	}
	return r.bare()
}

// fill reads the items of a list or the members of an object up to its end: its own bracket, one that ends what is
// around it, or the end of the text.
func (r *repairer) fill(v *value) error {
	own, other := byte('}'), byte(']')
	if v.kind == kindArray {
		own, other = other, own
	}
	var seen map[string]int
	for comma := true; ; {
		c := r.space()
		switch before := r.text[r.pos-1]; {
		case c == own:
			r.pos++
			return nil
		case c == other && slices.Contains(r.open, other-2): // '{' and '[' are two before their ends
			return nil
		case r.pos == len(r.text):
			if comma {
				return errCutOff
			}
			return nil
		case comma, v.kind == kindObject:
		case c == '{' && before == '}', c == '[' && before == ']':
		default:
			return errUnclear
		}
		if v.kind == kindArray {
			item, err := r.value()
			if v.items = append(v.items, item); err != nil {
				return err
			}
		} else {
			m, err := r.member()
			if _, twice := v.find(m.key, seen); err == nil && twice {
				err = fmt.Errorf("with %s once %w", shorten(m.name, 80), errUnclear)
			}
			if err != nil {
				return err
			}
			v.members = append(v.members, m)
			seen = remember(seen, v.members)
		}
		if comma = r.space() == ','; comma {
			r.pos++
		}
	}
}

func (r *repairer) member() (m member, err error) {
	if markAt(r.text[r.pos:]) == (mark{}) {
		m.name = r.word()
	} else if m.name, err = r.string(); err != nil {
		return m, err
	}
	m.key = unquote(m.name)
	switch c := r.space(); {
	case r.pos == len(r.text):
		return m, errCutOff
	case c != ':' || m.key == "":
		return m, errUnclear
	}
	r.pos++
	m.value, err = r.value()
	return m, err
}

// word reads a name without quotes.
func (r *repairer) word() string {
	start := r.pos
	for ; r.pos < len(r.text); r.pos++ {
		c := r.text[r.pos]
		letter := c == '_' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (r.pos == start || c != '-' && (c < '0' || c > '9')) {
			break
		}
	}
	return quote(r.text[start:r.pos])
}

var plainWord = regexp.MustCompile(`^[A-Za-z_./]*[A-Za-z_][A-Za-z0-9_./-]*$`)

// bare reads a value without quotes: a number, a literal, or a word.
func (r *repairer) bare() (value, error) {
	end := strings.IndexAny(r.text[r.pos:], " \t\r\n,}]")
	if end < 0 {
		end = len(r.text) - r.pos
	}
	word := r.text[r.pos : r.pos+end]
	r.pos += end
	switch strings.ToLower(word) {
	case "true", "false":
		return value{kind: kindBool, text: strings.ToLower(word)}, nil
	case "null", "none", "undefined":
		return value{kind: kindNull, text: "null"}, nil
	}
	if r.pos == len(r.text) {
		return value{}, errCutOff // which may be half of it
	}
	if json.Valid([]byte(word)) {
		return value{kind: kindNumber, text: word}, nil
	}
	if digits, ok := number(word); ok && strings.Trim(word, "+-")[0] != '0' { // 0644 means another number
		return value{kind: kindNumber, text: digits}, nil
	}
	if next := r.space(); !plainWord.MatchString(word) || strings.IndexByte(",}]", next) < 0 {
		return value{}, errUnclear
	}
	return text(word), nil
}

// remember indexes members from 16 keys on, where a linear search would make hostile arguments quadratic.
func remember(seen map[string]int, members []member) map[string]int {
	if n := len(members); seen != nil {
		seen[members[n-1].key] = n - 1
	} else if n == 16 {
		seen = make(map[string]int, 64)
		for i, m := range members {
			seen[m.key] = i
		}
	}
	return seen
}

func (v *value) find(key string, seen map[string]int) (int, bool) {
	if seen != nil {
		i, ok := seen[key]
		return i, ok
	}
	for i := range v.members {
		if v.members[i].key == key {
			return i, true
		}
	}
	return 0, false
}
