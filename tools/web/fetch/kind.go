package fetch

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// declared is the media type that a site gives, or "".
func declared(header http.Header) string {
	text := header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(text)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(text), ";") // its parameters alone may be wrong
	}
	return strings.TrimSpace(kind)
}

// vague types are what servers send for files that they do not know.
func vague(kind string) bool {
	unknown := []string{"text/plain", "application/octet-stream", "binary/octet-stream"}
	return !strings.Contains(kind, "/") || slices.Contains(unknown, kind)
}

// kindOf is the media type of a body that begins with head.
func kindOf(header http.Header, head []byte) string {
	kind := declared(header)
	if !vague(kind) {
		return kind
	}
	found := sniff(head)
	verbatim := kind == "text/plain" && strings.EqualFold(header.Get("X-Content-Type-Options"), "nosniff")
	if verbatim && limitOf(found) > 0 && found != "application/pdf" {
		return kind // a source file that is to be read as it is, such as a raw page of HTML
	}
	return found
}

var (
	rootTag   = regexp.MustCompile(`<(!doctype html|html|rss|feed|svg)\b`)
	rootTypes = map[string]string{
		"!doctype html": "text/html", "html": "text/html",
		"rss": "application/rss+xml", "feed": "application/atom+xml", "svg": "image/svg+xml",
	}
)

// sniff knows what the http package takes for mere text, too.
func sniff(head []byte) string {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') && (json.Valid(text) || len(head) == headSize) {
		return "application/json"
	}
	if len(text) > 0 && text[0] == '<' {
		start := bytes.ToLower(text[:min(len(text), 1024)])
		if tag := rootTag.FindSubmatch(start); tag != nil {
			return rootTypes[string(tag[1])]
		}
	}
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	return kind
}

// limitOf is the most bytes of a body of a media type; 0 for one without text.
func limitOf(kind string) int64 {
	switch {
	case kind == "application/pdf":
		return 25 << 20
	case strings.HasPrefix(kind, "text/"), strings.HasSuffix(kind, "+xml"), strings.HasSuffix(kind, "+json"),
		slices.Contains(textual, kind):
		return 10 << 20
	}
	return 0
}

// textual are the types of text that are named otherwise.
var textual = []string{
	"application/ecmascript", "application/javascript", "application/json", "application/json-seq", "application/jsonl",
	"application/ndjson", "application/sql", "application/toml", "application/typescript", "application/x-httpd-php",
	"application/x-javascript", "application/x-latex", "application/x-ndjson", "application/x-sh", "application/x-tex",
	"application/x-yaml", "application/xml", "application/yaml",
}
