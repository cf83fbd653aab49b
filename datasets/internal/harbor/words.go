package harbor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// reference is $NAME, ${NAME} or ${NAME:-fallback}; a $ without a name; or any of them behind a backslash.
var reference = regexp.MustCompile(`\\?\$(?:\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|([A-Za-z_][A-Za-z0-9_]*))?`)

// expand replaces variables by what the Dockerfile itself has said of them.
func (d *dockerfile) expand(text string) (string, error) {
	var wrong error
	out := reference.ReplaceAllStringFunc(text, func(found string) string {
		m := reference.FindStringSubmatch(found)
		name, fallback := m[1]+m[3], m[2]
		value, known := d.env[name]
		if !known {
			value, known = d.args[name]
		}
		value = cmp.Or(value, fallback)
		switch {
		case found[0] == '\\':
			return found[1:]
		case name == "":
			wrong = fmt.Errorf("%q is not understood", text)
		case !known && value == "":
			wrong = fmt.Errorf("$%s is the image's own, which is only known to an engine; "+
				"write its value, or build the image and name it as docker_image", name)
		case d.expanded > mostText:
			wrong = errors.New("its variables make too long a text")
			return ""
		}
		d.expanded += len(value)
		return value
	})
	return out, wrong
}

const white = " \t"

// words divides a text where one of the separators stands outside of quotes, and takes the quotes off. A $ behind a
// backslash stays so, for expand.
func words(text, separators string) (all []string) {
	var word strings.Builder
	var quoted rune
	escaped, begun := false, false
	for _, r := range text {
		if quoted == 0 && !escaped && strings.ContainsRune(separators, r) {
			if begun {
				all = append(all, word.String())
			}
			word.Reset()
			begun = false
			continue
		}
		begun = true
		switch {
		case escaped:
			if r == '$' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quoted != '\'':
			escaped = true
		case quoted == 0 && (r == '"' || r == '\''):
			quoted = r
		case quoted == r:
			quoted = 0
		default:
			word.WriteRune(r)
		}
	}
	if begun {
		all = append(all, word.String())
	}
	return all
}

// unquote takes off the quotes around a text, or the parts of one.
func unquote(text string) string { return strings.Join(words(text, ""), "") }

// arguments are the words of a COPY, in either form.
func arguments(rest string) (list []string, err error) {
	if !strings.HasPrefix(rest, "[") {
		return words(rest, white), nil
	}
	if err := json.Unmarshal([]byte(rest), &list); err != nil {
		return nil, fmt.Errorf("%q is not a list of strings", rest)
	}
	return list, nil
}
