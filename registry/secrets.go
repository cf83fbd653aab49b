package registry

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minSecret is the least length of a value that is masked: what is shorter stands in too many results by chance.
const minSecret = 8

// Secrets finds the values that the runner holds, in the spellings that tools give them. Nothing is guessed: what does
// not contain such a value is never changed. It is immutable, and one serves all sessions.
type Secrets struct {
	names []string   // longest value first, so that one that holds another goes whole
	spelt [][]string // by name, longest first
	heads [][]string // by name, what spelt begin with: a text without these, which nearly all are, has none of them
	shown []string   // by name, what stands in its place, as the inside of a JSON string
}

// NewSecrets takes values by the names under which results will show them. Values under 8 bytes are left out.
func NewSecrets(values map[string]string) *Secrets {
	s := &Secrets{}
	for _, name := range sortedKeys(values) {
		if len(values[name]) >= minSecret {
			s.names = append(s.names, name)
		}
	}
	slices.SortStableFunc(s.names, func(a, b string) int { return len(values[b]) - len(values[a]) })
	for _, name := range s.names {
		spelt := spellings(values[name])
		s.spelt, s.heads = append(s.spelt, spelt), append(s.heads, heads(spelt))
		s.shown = append(s.shown, inner("[secret "+name+"]"))
	}
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

// mask replaces secrets in a JSON text, or in a plain one. It returns the names of those that it found, sorted.
func (s *Secrets) mask(text string) (string, []string) {
	if s == nil {
		return text, nil
	}
	var found []string
	for i, name := range s.names {
		if !slices.ContainsFunc(s.heads[i], func(head string) bool { return strings.Contains(text, head) }) {
			continue
		}
		clean := text
		for _, each := range s.spelt[i] {
			clean = strings.ReplaceAll(clean, each, s.shown[i])
		}
		if clean != text {
			text, found = clean, append(found, name)
		}
	}
	slices.Sort(found)
	return text, found
}

// spellings are the forms in which a value can stand in a JSON text: as it is, in an URL, in base64 wherever it begins
// there, in hexadecimal, and each of them in JSON within JSON.
func spellings(value string) []string {
	plain := []string{value, url.QueryEscape(value), url.PathEscape(value), hex.EncodeToString([]byte(value))}
	plain = append(plain, strings.ToUpper(plain[3]))
	for _, escaped := range plain[1:3] {
		plain = append(plain, lowerEscapes(escaped))
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
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(all)
}

// heads are the different beginnings of texts, none of which is shorter than a secret.
func heads(texts []string) []string {
	all := make([]string, len(texts))
	for i, each := range texts {
		all[i] = each[:minSecret]
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// encoded is the part of a value's base64 that is the same whatever stands around it, when it begins at a byte whose
// place is shift from a multiple of three.
func encoded(encoding *base64.Encoding, value string, shift int) string {
	text := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value))
	first := []int{0, 2, 3}[shift]
	if (shift+len(value))%3 != 0 {
		text = text[:len(text)-1]
	}
	return text[first:]
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}

// inner is a text as it stands between the quotes of a JSON string.
func inner(text string) string {
	text = quote(text)
	return text[1 : len(text)-1]
}

// innerHTML is inner of an encoder that escapes for HTML, too, as Go's does.
func innerHTML(text string) string {
	return strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(inner(text))
}

// innerASCII is inner of an encoder that writes nothing but ASCII, as Python's does.
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
