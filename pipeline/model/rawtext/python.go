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
		return p.list(']', depth)
	case '(':
		return p.list(')', depth)
	case '{':
		return p.dict(depth)
	}
	start := p.at
	for p.at < len(p.text) && literal(p.text[p.at]) {
		p.at++
	}
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

func (p *python) list(closer byte, depth int) bool {
	p.at++
	p.out.WriteByte('[')
	for first := true; !p.next(closer); first = false {
		if !first {
			if !p.next(',') {
				return false
			}
			if p.next(closer) {
				break
			}
			p.out.WriteString(", ")
		}
		if !p.value(depth + 1) {
			return false
		}
	}
	p.out.WriteByte(']')
	return true
}

func (p *python) dict(depth int) bool {
	p.at++
	p.out.WriteByte('{')
	for first := true; !p.next('}'); first = false {
		if !first {
			if !p.next(',') {
				return false
			}
			if p.next('}') {
				break
			}
			p.out.WriteString(", ")
		}
		p.at = space(p.text, p.at)
		if p.at == len(p.text) || p.text[p.at] != '"' && p.text[p.at] != '\'' || !p.string() || !p.next(':') {
			return false
		}
		p.out.WriteString(": ")
		if !p.value(depth + 1) {
			return false
		}
	}
	p.out.WriteByte('}')
	return true
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
