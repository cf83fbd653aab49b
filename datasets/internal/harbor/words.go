package harbor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// expand replaces $NAME and ${NAME} by what the Dockerfile itself has said of it.
func (d *dockerfile) expand(text string) (string, error) {
	var out strings.Builder
	for len(text) > 0 {
		before, after, found := strings.Cut(text, "$")
		if strings.HasSuffix(before, `\`) && found {
			out.WriteString(strings.TrimSuffix(before, `\`) + "$")
			text = after
			continue
		}
		out.WriteString(before)
		if !found {
			break
		}
		name, fallback, rest := after, "", ""
		if braced, ok := strings.CutPrefix(after, "{"); ok {
			var closed bool
			if name, rest, closed = strings.Cut(braced, "}"); !closed {
				return "", fmt.Errorf("%q has no end", "${"+braced)
			}
			name, fallback, _ = strings.Cut(name, ":-")
		} else {
			end := strings.IndexFunc(after, func(r rune) bool {
				return !(r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
			})
			if end >= 0 {
				name, rest = after[:end], after[end:]
			}
		}
		if !variableName.MatchString(name) {
			return "", fmt.Errorf("%q is not understood", "$"+after)
		}
		value, known := d.env[name]
		if !known {
			value, known = d.args[name]
		}
		switch {
		case value == "" && fallback != "":
			value = fallback
		case !known:
			return "", fmt.Errorf("$%s is the image's own, which is only known to an engine; write its value, or build the image and name it as docker_image", name)
		}
		out.WriteString(value)
		text = rest
		if out.Len()+d.expanded > mostText {
			return "", errors.New("its variables make too long a text")
		}
	}
	d.expanded += out.Len()
	return out.String(), nil
}

// split divides a line at white space outside of quotes.
func split(line string) (words []string) {
	var word strings.Builder
	var quoted rune
	escaped, any := false, false
	for _, r := range line {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quoted != '\'':
			escaped = true
		case quoted == 0 && (r == '"' || r == '\''):
			quoted = r
		case quoted == r:
			quoted = 0
		case quoted == 0 && (r == ' ' || r == '\t'):
			if any {
				words = append(words, word.String())
			}
			word.Reset()
			any = false
			continue
		}
		any = true
		word.WriteRune(r)
	}
	if any {
		words = append(words, word.String())
	}
	return words
}

// unquote takes off the quotes around a word, or the part of one.
func unquote(word string) string {
	var out strings.Builder
	var quoted rune
	escaped := false
	for _, r := range word {
		switch {
		case escaped:
			if r == '$' {
				out.WriteRune('\\') // stays for expand
			}
			out.WriteRune(r)
			escaped = false
		case r == '\\' && quoted != '\'':
			escaped = true
		case quoted == 0 && (r == '"' || r == '\''):
			quoted = r
		case quoted == r:
			quoted = 0
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// arguments are the words of a COPY, in either form.
func arguments(rest string) ([]string, error) {
	if !strings.HasPrefix(rest, "[") {
		var words []string
		for _, word := range split(rest) {
			words = append(words, unquote(word))
		}
		return words, nil
	}
	var words []string
	if err := json.Unmarshal([]byte(rest), &words); err != nil {
		return nil, fmt.Errorf("%q is not a list of strings", rest)
	}
	return words, nil
}
