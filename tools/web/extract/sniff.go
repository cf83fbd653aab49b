package extract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"trajgen/tools/web/source"
)

// form is how a body becomes text.
type form int

const (
	plain form = iota
	htmlForm
	xmlForm
	jsonForm
	pdf
	picture
	binary
)

// applications are the types application/* that are text, but for JSON and XML.
var applications = regexp.MustCompile(`^application/(x-)?(javascript|ecmascript|typescript|yaml|toml|sql|sh|csh|tex|latex|perl|` +
	`python|ruby|php|graphql|markdown|www-form-urlencoded|subrip|sgml|httpd-php|csv|ndjson|jsonl|jsonlines|json-seq)$`)

// formOf returns the form of a media type.
func formOf(media string) form {
	family, kind, _ := strings.Cut(media, "/")
	switch {
	case media == "text/html", media == "application/xhtml+xml":
		return htmlForm
	case kind == "pdf" || kind == "x-pdf":
		return pdf
	case family == "image":
		return picture
	case kind == "xml", strings.HasSuffix(kind, "+xml"):
		return xmlForm
	case kind == "json", strings.HasSuffix(kind, "+json"):
		return jsonForm
	case family == "text", applications.MatchString(media):
		return plain
	}
	return binary
}

// Kind is the media type of a body that begins with head, and how many of its bytes are read at most. Without a head, what its
// server says decides alone. A body without text, whose size is -1 where it is not known, is an error, a *source.Error.
func Kind(contentType string, head []byte, size int64) (media string, most int64, err error) {
	media, form := sniff(contentType, head)
	switch form {
	case binary, picture:
		return media, 0, noText(media, form, size)
	case pdf:
		return media, maxPDF, nil
	}
	return media, maxBody, nil
}

// noText is the error about a body that has no text.
func noText(media string, form form, size int64) *source.Error {
	bytes := "of unknown size"
	if size >= 0 {
		bytes = fmt.Sprintf("%d bytes", size)
	}
	switch {
	case media == "image/svg+xml":
		return source.Errorf(source.Agent, source.NoText, "A drawing of type %s (%s) has no text; a browser shows it.", media, bytes)
	case form == picture:
		return source.Errorf(source.Agent, source.NoText,
			"A picture of type %s (%s) has no text; the tool vision_analyze looks at pictures.", media, bytes)
	}
	return source.Errorf(source.Agent, source.NoText, "A file of type %s (%s) has no text.", media, bytes)
}

// unsaid are the types that servers send for files that they know nothing of.
var unsaid = map[string]bool{"": true, "text/plain": true, "application/octet-stream": true, "binary/octet-stream": true,
	"application/unknown": true, "application/x-unknown": true, "unknown/unknown": true, "*/*": true}

// sniff returns the media type of a body, and its form. A type that says something is believed, unless the body can have no
// such form: text is not full of control characters, and a PDF begins as one.
func sniff(contentType string, body []byte) (string, form) {
	media, _, _ := strings.Cut(contentType, ";")
	if media = strings.ToLower(strings.TrimSpace(media)); !strings.Contains(media, "/") {
		media = ""
	}
	said := formOf(media)
	head := body[:min(len(body), 4<<10)]
	if wide(head) >= 0 || strings.Contains(strings.ToLower(contentType), "utf-16") {
		head = []byte(decode(head, contentType, plain)) // in which the zeros of UTF-16 are gone
	}
	head = bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n")
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return "application/pdf", pdf
	case unsaid[media] && !binaryHead(head), said == pdf:
		media = textType(head, body)
		return media, formOf(media)
	case binaryHead(head) && (unsaid[media] || said != picture && said != binary):
		media = strings.Replace(magic(head), "text/plain", "application/octet-stream", 1)
		if formOf(media) == picture {
			return media, picture
		}
		return media, binary
	case said == xmlForm:
		if root := rootOf(head); root == "html" || root == "svg" {
			media = textType(head, body)
			return media, formOf(media)
		}
	}
	return media, said
}

// magic returns the media type that the first bytes of a body say.
func magic(head []byte) string {
	media, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return media
}

// binaryHead reports whether the head of a body can be no text. A word of text can look like a magic number, and a control
// character slips into text at times: it takes both, or many of these.
func binaryHead(head []byte) bool {
	controls := 0
	for _, b := range head {
		if b < ' ' && b != '\t' && b != '\n' && b != '\r' && b != '\f' && b != '\x1b' || b == 0x7f {
			controls++
		}
	}
	found := magic(head)
	return controls > len(head)/20 || controls > 0 && found != "application/octet-stream" && !strings.HasPrefix(found, "text/")
}

// textType returns the media type of a text.
func textType(head, body []byte) string {
	switch rootOf(head) {
	case "html":
		return "text/html"
	case "svg":
		return "image/svg+xml"
	case "rss":
		return "application/rss+xml"
	case "feed":
		return "application/atom+xml"
	case "rdf":
		return "application/rdf+xml"
	}
	switch {
	case magic(head) == "text/html":
		return "text/html"
	case bytes.HasPrefix(head, []byte("<?xml")):
		return "text/xml"
	case len(head) > 0 && (head[0] == '{' || head[0] == '[') && json.Valid(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))):
		return "application/json"
	}
	return "text/plain"
}

// root is the first element of a text in markup, after what may stand before it.
var root = regexp.MustCompile(`^(?:\s|<\?[^>]*>|<!--(?s:.*?)-->|<!(?i:doctype)[^>\[]*(?:\[[^\]]*\]\s*)?>)*` +
	`<(?:\w+:)?(?i:(html|svg|rss|feed|rdf))[\s/>]`)

// rootOf returns the name of the first element of a text if it is one that says what the text is.
func rootOf(head []byte) string {
	if found := root.FindSubmatch(head); found != nil {
		return strings.ToLower(string(found[1]))
	}
	return ""
}
