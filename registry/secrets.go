package registry

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minSecret is the least length of a masked value: shorter ones occur in too many results by chance.
const minSecret = 8

// Secrets finds secret values of the runner, in the spellings in which tools print them. A text without such a value is never
// changed. It is immutable, and all sessions share one.
type Secrets struct {
	names  []string
	shown  []string          // by name, the replacement, as the inside of a JSON string
	masker *strings.Replacer // of all spellings, the longest first, as one may contain another
}

// NewSecrets takes values by the names that results show instead. Values under 8 bytes are ignored.
func NewSecrets(values map[string]string) *Secrets {
	s := &Secrets{}
	shown := map[string]string{} // by spelling
	for _, name := range sortedKeys(values) {
		if len(values[name]) < minSecret {
			continue
		}
		s.names, s.shown = append(s.names, name), append(s.shown, inner("[secret "+name+"]"))
		for _, each := range spellings(values[name]) {
			shown[each] = s.shown[len(s.shown)-1]
		}
	}
	var pairs []string
	for _, each := range slices.SortedFunc(maps.Keys(shown), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) {
		pairs = append(pairs, each, shown[each])
	}
	s.masker = strings.NewReplacer(pairs...)
	return s
}

// String names the secrets, so that printing them is harmless.
func (s *Secrets) String() string {
	if s == nil {
		return "no secrets"
	}
	return "secrets " + strings.Join(s.names, ", ")
}

// GoString is String.
func (s *Secrets) GoString() string { return s.String() }

// without is a JSON text without the secrets.
func (s *Secrets) without(text json.RawMessage) json.RawMessage {
	clean, _ := s.mask(string(text))
	return json.RawMessage(clean)
}

// mask replaces secrets in a JSON or plain text. It returns the names of those that it found, sorted.
func (s *Secrets) mask(text string) (clean string, found []string) {
	if s == nil {
		return text, nil
	}
	if clean = s.masker.Replace(text); clean == text {
		return text, nil
	}
	for i, name := range s.names {
		if strings.Count(clean, s.shown[i]) > strings.Count(text, s.shown[i]) {
			found = append(found, name)
		}
	}
	return clean, found
}

// spellings are the forms of a value in a JSON text: plain, in a URL, in base64 at any offset, in hexadecimal, and each of them in
// JSON within JSON.
func spellings(value string) []string {
	plain := []string{value, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value))}
	plain = append(plain, strings.ToUpper(plain[3]))
	for _, escaped := range plain[1:3] {
		plain = append(plain, escapes.ReplaceAllStringFunc(escaped, strings.ToLower)) // %2F as %2f
	}
	for shift := range 3 {
		plain = append(plain, encoded(base64.RawStdEncoding, value, shift), encoded(base64.RawURLEncoding, value, shift))
	}
	var all []string
	for range 3 { // JSON in JSON in JSON
		var deeper []string
		for _, each := range plain {
			if len(each) >= minSecret {
				all = append(all, each, strings.ReplaceAll(each, "/", `\/`))
			}
			deeper = append(deeper, inner(each), innerHTML(each), innerASCII(each))
		}
		slices.Sort(deeper)
		plain = slices.Compact(deeper)
	}
	return all
}

// encoded is the part of a value's base64 that does not depend on the surrounding bytes, when the value begins at an offset that is
// shift modulo three.
func encoded(encoding *base64.Encoding, value string, shift int) string {
	text := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
	first := []int{0, 2, 3}[shift]
	if (shift+len(value))%3 != 0 {
		text = text[:len(text)-1]
	}
	return text[first:]
}

var escapes = regexp.MustCompile(`%..`)

// inner is a text encoded for the inside of a JSON string.
func inner(text string) string {
	text = quote(text)
	return text[1 : len(text)-1]
}

// innerHTML is inner of an encoder that also escapes for HTML, as Go's does.
func innerHTML(text string) string {
	return strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(inner(text))
}

// innerASCII is inner of an encoder that only writes ASCII, as Python's does.
func innerASCII(text string) string {
	var b strings.Builder
	for _, r := range inner(text) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
