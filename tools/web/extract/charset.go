package extract

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
)

var (
	metaCharset = regexp.MustCompile(`(?i)<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w:.-]+)`)
	xmlCharset  = regexp.MustCompile(`^\s*<\?xml[^>]{0,200}encoding\s*=\s*["']([\w:.-]+)["']`)
)

// declaredWithin is how far into a page its declaration of a charset is looked for.
const declaredWithin = 8 << 10

// decode returns a body as UTF-8. Bytes that mean nothing are replaced. What it is in says, as in browsers: a byte order mark;
// HTTP's header; the page. Else it is UTF-8 if it can be, else what its letters look like.
func decode(body []byte, contentType string, form form) string {
	e := declared(body, contentType, form)
	if e == nil {
		e = guess(body)
	}
	if e != encoding.Nop {
		if text, err := e.NewDecoder().Bytes(body); err == nil {
			body = text
		}
	}
	return lines(strings.TrimPrefix(strings.ToValidUTF8(string(body), "\uFFFD"), "\uFEFF"))
}

// lines ends the lines of a text with a line feed alone.
func lines(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// declared returns the encoding that a body is said to be in, encoding.Nop for UTF-8, or nil.
func declared(body []byte, contentType string, form form) encoding.Encoding {
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return encoding.Nop
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		return lookup("utf-16le")
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		return lookup("utf-16be")
	case form == jsonForm:
		return encoding.Nop // which RFC 8259 says
	}
	_, parameters, _ := mime.ParseMediaType(contentType)
	if e := lookup(parameters["charset"]); e != nil {
		return e
	}
	head := body[:min(len(body), declaredWithin)]
	pattern := metaCharset
	switch found := xmlCharset.FindSubmatch(head); {
	case found != nil:
		pattern = xmlCharset
	case form != htmlForm:
		return nil
	}
	found := pattern.FindSubmatch(head)
	if found == nil {
		return nil
	}
	if strings.HasPrefix(strings.ToLower(string(found[1])), "utf-16") {
		return encoding.Nop // a declaration that can be read in ASCII is not in UTF-16
	}
	return lookup(string(found[1]))
}

// lookup returns the encoding of this name, encoding.Nop for UTF-8, or nil if browsers do not know it.
func lookup(name string) encoding.Encoding {
	e, canonical := charset.Lookup(name)
	switch canonical {
	case "", "replacement":
		return nil
	case "utf-8":
		return encoding.Nop
	}
	return e
}

// guess returns the encoding that a body without a declaration is most probably in.
func guess(body []byte) encoding.Encoding {
	if utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 || nearlyUTF8(body) {
		return encoding.Nop
	}
	if order := wide(body); order >= 0 {
		return unicode.UTF16(unicode.Endianness(order == 1), unicode.IgnoreBOM)
	}
	results, err := chardet.NewTextDetector().DetectAll(letters(body))
	if err != nil {
		return encoding.Nop
	}
	var best chardet.Result
	var found encoding.Encoding
	for _, r := range results { // which come in another order each time where they are as probable
		name := r.Charset
		if name == "GB-18030" {
			name = "gb18030"
		}
		better := r.Confidence > best.Confidence || r.Confidence == best.Confidence && r.Charset < best.Charset
		if e := lookup(name); e != nil && better {
			best, found = r, e
		}
	}
	if found == nil {
		return encoding.Nop
	}
	return found
}

// nearlyUTF8 reports whether a body is in UTF-8 but for a few bytes, as after a cut in the middle of a character.
func nearlyUTF8(body []byte) bool {
	good, bad := 0, 0
	for len(body) > 0 {
		r, size := utf8.DecodeRune(body)
		switch {
		case size > 1:
			good++
		case r == utf8.RuneError:
			bad++
		}
		body = body[size:]
	}
	return good > 10*bad
}

// wide returns which of the two bytes of each character of ASCII is zero if the text is in UTF-16, else -1.
func wide(body []byte) int {
	switch {
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		return 1
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		return 0
	}
	var zeros [2]int
	head := body[:min(len(body), 4<<10)]
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	for order := range zeros {
		if zeros[order] > 3+len(head)/10 && zeros[order] > 10*zeros[1-order] {
			return order
		}
	}
	return -1
}

// letters returns the pieces of a body that have bytes outside of ASCII, as its markup and scripts are in ASCII whatever the
// language, and outweigh it.
func letters(body []byte) []byte {
	const enough = 32 << 10
	var kept []byte
	for piece := range bytes.FieldsFuncSeq(body, func(r rune) bool { return r == '<' || r == '>' || r == '\n' }) {
		if len(kept) > enough {
			break
		}
		if bytes.ContainsFunc(piece, func(r rune) bool { return r >= utf8.RuneSelf }) {
			kept = append(append(kept, piece...), ' ')
		}
	}
	return kept[:min(len(kept), enough)]
}
