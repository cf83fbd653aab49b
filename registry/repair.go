package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Why a text that is not JSON is not repaired, in words that tell the model what to write instead.
var (
	errCutOff  = errors.New("that is whole (this one ends too early; write what is long in several calls)")
	errSeveral = errors.New("and nothing else (make a call of its own for each object)")
	errUnclear = errors.New(`(inside of texts write a quote as \", a line end as \n and a backslash as \\)`)
)

// maxRepairDepth is how deep what is repaired may be nested.
const maxRepairDepth = 200

// repair writes as JSON what has the slips that models make, from the first bracket of that kind on: single and curly
// quotes, names without quotes, comments, the literals of Python, raw control characters, quotes inside of texts that
// are not escaped, missing commas and a trailing one, missing and further closing brackets, words around it. names are
// those of the members that the schema knows.
//
// It is exact or refused. A text that can be read in two ways is refused, and so is one that stops inside of a value or
// that has a name twice: the most likely reading of a file is still half a file when it is wrong.
func repair(text string, open byte, names []string) (string, error) {
	start := strings.IndexByte(text, open)
	if start < 0 || strings.ContainsAny(text[:start], "{[") {
		return "", errUnclear
	}
	text = text[start:]
	if strings.HasPrefix(strings.TrimLeft(text[1:], " \t\r\n"), `\`) { // as inside of a string: {\"path\":\"a\"}
		var inner string
		if json.Unmarshal([]byte(`"`+text+`"`), &inner) != nil || len(inner) >= len(text) {
			return "", errUnclear
		}
		return repair(inner, open, names)
	}
	fixed, err := twice(text, (*repairer).whole)
	if err == nil || err == errSeveral {
		return fixed, err
	}
	fixed, unclear := twice(text, func(r *repairer) error { return r.byNames(names) })
	if unclear != nil {
		return "", err
	}
	return fixed, nil
}

// twice reads a text a second time, when the first has shown how its backslashes are meant.
func twice(text string, read func(*repairer) error) (string, error) {
	first := &repairer{text: text}
	if err := read(first); err != nil {
		return "", err
	}
	if err := first.signs.settle(); err != nil {
		return "", err
	}
	second := &repairer{text: text, signs: first.signs}
	err := read(second)
	return second.out.String(), err
}

// repairer reads a text and writes it as JSON.
type repairer struct {
	text  string
	pos   int
	open  []byte // the brackets that are open
	signs signs
	out   strings.Builder
}

// whole reads a value in which each quote begins or ends a string, and what may stand behind it.
func (r *repairer) whole() error {
	err := r.value()
	rest := strings.TrimLeft(r.text[r.pos:], "}]")
	if err == nil && (strings.ContainsAny(rest, `{["`) || rest != "" && strings.IndexByte(" \t\r\n`<", rest[0]) < 0) {
		err = errSeveral
	}
	return err
}

// blank is white space and comments. One with a quote or without an end may hide an argument.
var blank = regexp.MustCompile(`^(?:[ \t\r\n]|/\*[^"]*?\*/|(?://|#)[^"\n]*\n)+`)

// space skips what is blank, and returns the byte behind it, 0 at the end.
func (r *repairer) space() byte {
	r.pos += len(blank.FindString(r.text[r.pos:]))
	if r.pos == len(r.text) {
		return 0
	}
	return r.text[r.pos]
}

func (r *repairer) value() error {
	switch c := r.space(); {
	case r.pos == len(r.text):
		return errCutOff
	case c == '{' || c == '[':
		if len(r.open) == maxRepairDepth {
			return errUnclear
		}
		r.open = append(r.open, c)
		r.pos++
		r.out.WriteByte(c)
		err := r.fill(c == '{')
		r.out.WriteByte(ends(c))
		r.open = r.open[:len(r.open)-1]
		return err
	case markAt(r.text[r.pos:]) != mark{}:
		text, err := r.string()
		r.out.WriteString(text)
		return err
	}
	return r.bare()
}

// ends is the bracket that ends what another begins.
func ends(open byte) byte { return open + 2 } // in ASCII

// fill reads the items of a list or the members of an object up to its end: its own bracket, one that ends what is
// around it, or the end of the text.
func (r *repairer) fill(object bool) error {
	own := ends(r.open[len(r.open)-1])
	around := func(c byte) bool {
		return slices.ContainsFunc(r.open, func(open byte) bool { return ends(open) == c })
	}
	item := r.value
	if had := map[string]bool{}; object {
		item = func() error { return r.member(had) }
	}
	for begun, comma := false, true; ; begun = true {
		c := r.space()
		switch before := r.text[r.pos-1]; {
		case c == own:
			r.pos++
			return nil
		case around(c):
			return nil
		case r.pos == len(r.text):
			if comma || before == ' ' || before == '\t' { // more was to come
				return errCutOff
			}
			return nil
		case comma, object:
		case c == '{' && before == '}', c == '[' && before == ']':
		default:
			return errUnclear
		}
		if begun {
			r.out.WriteByte(',')
		}
		if err := item(); err != nil {
			return err
		}
		if comma = r.space() == ','; comma {
			r.pos++
		}
	}
}

// member reads a name and its value. had are the names before it.
func (r *repairer) member(had map[string]bool) error {
	name, err := r.name()
	if err != nil {
		return err
	}
	r.out.WriteString(name + ":")
	if err := r.value(); err != nil {
		return err
	}
	key := unquote(name)
	if had[key] {
		return fmt.Errorf("with %s once %w", shorten(name, 80), errUnclear)
	}
	had[key] = true
	return nil
}

// name reads a member's name and the colon.
func (r *repairer) name() (name string, err error) {
	if markAt(r.text[r.pos:]) == (mark{}) {
		word := plainName.FindString(r.text[r.pos:])
		r.pos += len(word)
		name = quote(word)
	} else if name, err = r.string(); err != nil {
		return "", err
	}
	switch c := r.space(); {
	case r.pos == len(r.text):
		return "", errCutOff
	case c != ':' || unquote(name) == "":
		return "", errUnclear
	}
	r.pos++
	return name, nil
}

// What may stand without quotes: as a name, and as a value.
var (
	plainName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*`)
	plainWord = regexp.MustCompile(`^[A-Za-z_./]*[A-Za-z_][A-Za-z0-9_./-]*$`)
)

// bare reads a value without quotes: a number, a literal, or a word.
func (r *repairer) bare() error {
	end := strings.IndexAny(r.text[r.pos:], " \t\r\n,}]")
	if end < 0 {
		end = len(r.text) - r.pos
	}
	word := r.text[r.pos : r.pos+end]
	r.pos += end
	digits, isNumber := number(word)
	switch lower := strings.ToLower(word); {
	case lower == "true" || lower == "false":
		word = lower
	case lower == "null" || lower == "none" || lower == "undefined":
		word = "null"
	case r.pos == len(r.text):
		return errCutOff // which may be half of it
	case json.Valid([]byte(word)):
	case isNumber && strings.Trim(word, "+-")[0] != '0': // 0644 means another number
		word = digits
	default:
		if next := r.space(); !plainWord.MatchString(word) || strings.IndexByte(",}]", next) < 0 {
			return errUnclear
		}
		word = quote(word)
	}
	r.out.WriteString(word)
	return nil
}
