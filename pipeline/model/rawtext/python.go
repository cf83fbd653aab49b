package rawtext

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fromPython turns a literal of Python into JSON: templates print a dictionary as Python does, and models learn that.
func fromPython(text string) (string, bool) {
	p := python{text: text}
	if !p.value(0) || space(text, p.at) != len(text) {
		return "", false
	}
	return p.out.String(), true
}

type python struct {
	text string
	at   int
	out  strings.Builder
}

func (p *python) value(depth int) bool {
	p.at = space(p.text, p.at)
	if p.at == len(p.text) || depth > 100 {
		return false
	}
	switch c := p.text[p.at]; c {
	case '"', '\'':
		return p.string()
	case '[':
		return p.collection("[]", ']', func() bool { return p.value(depth + 1) })
	case '(':
		return p.collection("[]", ')', func() bool { return p.value(depth + 1) })
	case '{':
		return p.collection("{}", '}', func() bool {
			p.at = space(p.text, p.at)
			if p.at == len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\'' || !p.string() || !p.next(':') {
				return false
			}
			p.out.WriteString(": ")
			return p.value(depth + 1)
		})
	}
	start := p.at
	p.at = literals(p.text, start)
	switch word := p.text[start:p.at]; word {
	case "True":
		p.out.WriteString("true")
	case "False":
		p.out.WriteString("false")
	case "None":
		p.out.WriteString("null")
	default:
		p.out.WriteString(word)
		return json.Valid([]byte(word))
	}
	return true
}

// next skips a character if it comes next.
func (p *python) next(c byte) bool {
	p.at = space(p.text, p.at)
	if p.at == len(p.text) || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

// items reads what stands between commas up to the closer, behind which one more comma changes nothing.
func (p *python) items(closer byte, each func(first bool) bool) bool {
	for first := true; !p.next(closer); first = false {
		if !first && !p.next(',') {
			return false
		}
		if !first && p.next(closer) {
			break
		}
		if !each(first) {
			return false
		}
	}
	return true
}

// collection writes what stands in the brackets at this place between those of JSON.
func (p *python) collection(brackets string, closer byte, item func() bool) bool {
	p.at++
	p.out.WriteByte(brackets[0])
	ok := p.items(closer, func(first bool) bool {
		if !first {
			p.out.WriteString(", ")
		}
		return item()
	})
	p.out.WriteByte(brackets[1])
	return ok
}

// string reads a string in either kind of quotes.
func (p *python) string() bool {
	end, ok := quoted(p.text, p.at)
	if !ok {
		p.at = end
		return false
	}
	quotes := p.text[p.at]
	rest := p.text[p.at+1 : end-1]
	p.at = end
	var content strings.Builder
	for rest != "" {
		r, _, tail, err := strconv.UnquoteChar(rest, quotes)
		switch {
		case err == nil && rest[0] == '\\':
			content.WriteRune(r)
			rest = tail
		case rest[0] == '\\' && len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"'):
			content.WriteByte(rest[1])
			rest = rest[2:]
		default: // also a backslash that escapes nothing, which stays
			_, size := utf8.DecodeRuneInString(rest)
			content.WriteString(rest[:size])
			rest = rest[size:]
		}
	}
	p.out.WriteString(quote(content.String()))
	return true
}
