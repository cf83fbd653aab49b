package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The reasons to refuse a repair, in words that tell the model what to write instead.
var (
	errCutOff  = errors.New("that is whole (this one ends too early; write what is long in several calls)")
	errSeveral = errors.New("and nothing else (make a call of its own for each object)")
	errUnclear = errors.New(`(inside of texts write a quote as \", a line end as \n and a backslash as \\)`)
)

// maxRepairDepth is how deep what is repaired may be nested.
const maxRepairDepth = 200

// repair reads a text with the usual mistakes of models, from the first bracket of the given kind on, and writes it as JSON. The
// mistakes are single and curly quotes, names without quotes, comments, the literals of Python, raw control characters, unescaped
// quotes within strings, missing and trailing commas, missing and additional closing brackets, and words around the value. names
// are the members that the schema knows.
//
// repair is exact or refuses: a text that can be read in two ways, that stops within a value or that has a name twice is refused,
// as a wrong guess could destroy half a file.
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

// twice reads a text a second time, after the first has shown how its backslashes are meant.
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

// whole reads a value in which each quote begins or ends a string, and the text that may follow it.
func (r *repairer) whole() error {
	err := r.value()
	rest := strings.TrimLeft(r.text[r.pos:], "}]")
	if err == nil && (strings.ContainsAny(rest, `{["`) || rest != "" && strings.IndexByte(" \t\r\n`<", rest[0]) < 0) {
		err = errSeveral
	}
	return err
}

// blank matches white space and comments, except comments with a quote or without an end, which may hide an argument.
var blank = regexp.MustCompile(`^(?:[ \t\r\n]|/\*[^"]*?\*/|(?://|#)[^"\n]*\n)+`)

// space skips white space and comments, and returns the next byte, or 0 at the end.
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
			if comma || before == ' ' || before == '\t' { // the text was cut before another item
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

// Names and values without quotes.
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
		return errCutOff // the value may be incomplete
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
