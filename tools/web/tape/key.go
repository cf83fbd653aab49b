package tape

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"trajgen/outputs/log/blobs"
	"trajgen/tools/web/source"
)

// asked is a request without what differs between equal ones, and without secrets.
type asked struct {
	Provider string      `json:"provider,omitempty"`
	Method   string      `json:"method"`
	URL      string      `json:"url"`
	Sent     http.Header `json:"sent,omitempty"`
	SentBody string      `json:"sent_body,omitempty"` // the blob; "" for nothing
}

// key identifies what was asked: equal requests to one provider have equal keys.
type key [sha256.Size]byte

func (a asked) key() (k key) {
	h := sha256.New()
	for _, part := range []string{a.Provider, a.Method, a.URL, a.SentBody} {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	h.Sum(k[:0])
	return k
}

// loosely is the request without the parts of its URL that caches and trackers read.
func (a asked) loosely() asked {
	before, query, found := strings.Cut(a.URL, "?")
	if found {
		a.URL = before + joined(slices.DeleteFunc(strings.Split(query, "&"), passing))
	}
	return a
}

// joined is a query with its question mark.
func joined(pairs []string) string {
	if len(pairs) == 0 {
		return ""
	}
	return "?" + strings.Join(pairs, "&")
}

var timestamp = regexp.MustCompile(`^1\d{9}(\d{3})?$`)

// passing says that a pair of a query says nothing about the page.
func passing(pair string) bool {
	name, value, _ := strings.Cut(pair, "=")
	name = strings.ToLower(name)
	return name == "_" || name == "cb" || name == "gclid" || strings.HasPrefix(name, "utm_") || timestamp.MatchString(value)
}

// secrets are values that a recording must not have.
type secrets []string

// without takes the secrets out of a text, in the forms in which they stand in URLs and JSON.
func (s secrets) without(text []byte) []byte {
	for _, secret := range s {
		if len(secret) < 6 { // a word, such as none
			continue
		}
		quoted, _ := json.Marshal(secret)
		for _, form := range []string{secret, url.QueryEscape(secret), string(quoted[1 : len(quoted)-1])} {
			text = bytes.ReplaceAll(text, []byte(form), nil)
		}
	}
	return text
}

// read takes a request apart. Its body is given back as it came, and as it is kept.
func (s secrets) read(req *http.Request, provider string) (a asked, body, kept []byte, err error) {
	if req.Body != nil {
		body, err = io.ReadAll(io.LimitReader(req.Body, maxSent+1))
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return a, nil, nil, fmt.Errorf("read the body of a request: %w", err)
		}
		if len(body) > maxSent {
			return a, nil, nil, source.Errorf(source.Agent, source.TooLarge, "the request has more than %d MB", maxSent>>20)
		}
	}
	a = asked{Provider: provider, Method: req.Method, Sent: keep(req.Header, sentHeaders)}
	if a.Method == "" {
		a.Method = http.MethodGet
	}
	a.URL = string(s.without([]byte(plainURL(req.URL))))
	if len(a.URL) > maxURL || size(a.Sent) > maxHeader {
		return a, nil, nil, source.Errorf(source.Agent, source.TooLarge, "the address has more than %d KB", maxURL>>10)
	}
	if kept = canonical(s.without(body)); len(kept) > 0 {
		a.SentBody = blobs.Digest(kept)
	}
	return a, body, kept, nil
}

// canonical writes JSON in the one way in which equal values are equal texts, and leaves everything else as it is.
func canonical(body []byte) []byte {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return body
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return body
	}
	if _, err := decoder.Token(); err != io.EOF {
		return body
	}
	text, err := json.Marshal(value)
	if err != nil {
		return body
	}
	return text
}

// plainURL is a URL with host in lower case, and without default port, user, fragment and the values of parameters that are
// secrets by their name, in ASCII. The order of its query is that of the request.
func plainURL(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	var pairs []string
	if u.RawQuery != "" {
		pairs = strings.Split(u.RawQuery, "&")
	}
	for i, pair := range pairs {
		if name, _, found := strings.Cut(pair, "="); found && slices.Contains(secretNames, strings.ToLower(name)) {
			pairs[i] = name + "="
		}
	}
	return ascii(escapes.ReplaceAllStringFunc(scheme+"://"+host+path+joined(pairs), strings.ToUpper))
}

var escapes = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// ascii escapes the bytes that a URL should not have, as clients do.
func ascii(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// secretNames are parameters of URLs whose values give access. Names such as key and token also number pages, and stay.
var secretNames = []string{
	"access_token", "api-key", "api_key", "apikey", "auth_token", "client_secret", "password", "refresh_token", "sig", "signature",
	"subscription-key", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-credential", "x-goog-signature",
}

// The headers that are kept, by their canonical names: what tells how to read a body, and nothing that tells who asked.
var (
	sentHeaders = []string{"Accept", "Accept-Language", "Content-Type", "Range"}
	cameHeaders = []string{
		"Accept-Ranges", "Age", "Allow", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
		"Content-Length", "Content-Range", "Content-Type", "Date", "Etag", "Expires", "Last-Modified", "Location", "Retry-After",
		"Server", "Vary", "X-Robots-Tag",
	}
)

func keep(all http.Header, names []string) http.Header {
	kept := http.Header{}
	for _, name := range names {
		if values := all[name]; len(values) > 0 {
			kept[name] = slices.Clone(values)
		}
	}
	return kept
}

func size(header http.Header) (bytes int) {
	for _, values := range header {
		bytes += len(strings.Join(values, ""))
	}
	return bytes
}

// came is what is kept of the headers of a response: those with the names, or all without any. Where it redirects to is written without secrets, as the next request is.
func (s secrets) came(all http.Header, names []string) http.Header {
	kept := all.Clone()
	if names != nil {
		kept = keep(all, names)
	}
	for _, values := range kept {
		for i, value := range values {
			values[i] = string(s.without([]byte(value)))
		}
	}
	for i, to := range kept["Location"] {
		to, fragment, marked := strings.Cut(ascii(to), "#")
		before, query, found := strings.Cut(to, "?")
		if found {
			_, query, _ = strings.Cut(plainURL(&url.URL{RawQuery: query}), "?")
			before += "?" + query
		}
		if marked {
			before += "#" + fragment
		}
		kept["Location"][i] = before
	}
	return kept
}
