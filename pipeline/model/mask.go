package model

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// mask removes secrets from a server's answers, in every form in which servers repeat them. It is applied to the bytes as they
// are read, so that no tape, journal, log or error has a secret.
type mask struct {
	words    []string // forms of secrets, the longest first, as one may contain another
	forms    [][]byte // the same
	replacer *strings.Replacer
}

// masked replaces a secret. It needs no escape in a JSON string.
const masked = "[secret]"

// masks returns one mask for the bodies of good replies and one for everything else. A model's words must stay unchanged, so
// the first only removes secrets that cannot be a word, such as "lm-studio".
func (c Config) masks() (good, bad *mask) {
	const shortest, longEnough = 6, 12 // bytes; shorter ones are words such as "none"
	secrets := append([]string{c.APIKey}, c.Secrets...)
	return newMask(secrets, func(s string) bool {
		return len(s) >= longEnough || len(s) >= shortest && strings.ContainsAny(s, "0123456789")
	}), newMask(secrets, func(s string) bool { return len(s) >= shortest })
}

func newMask(secrets []string, counts func(string) bool) *mask {
	var all []string
	for _, secret := range secrets {
		scheme, token, ok := strings.Cut(secret, " ") // "Bearer abc"
		if ok && counts(token) {
			all = append(all, token)
		}
		if plain, err := base64.StdEncoding.DecodeString(token); strings.EqualFold(scheme, "basic") && err == nil && counts(string(plain)) {
			all = append(all, string(plain))
		}
		if counts(secret) {
			all = append(all, secret)
		}
	}
	m := &mask{}
	for _, secret := range all {
		escaped, _ := json.Marshal(secret)
		plain := episode.MustJSON(secret) // < and > as they are
		inner := string(plain[1 : len(plain)-1])
		m.words = append(m.words, secret, string(escaped[1:len(escaped)-1]), inner, strings.ReplaceAll(inner, "/", `\/`), url.QueryEscape(secret), url.PathEscape(secret))
	}
	slices.SortFunc(m.words, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	m.words = slices.Compact(m.words)
	var pairs []string
	for _, word := range m.words {
		pairs = append(pairs, word, masked)
		m.forms = append(m.forms, []byte(word))
	}
	m.replacer = strings.NewReplacer(pairs...)
	return m
}

// text is a text without secrets.
func (m *mask) text(s string) string { return m.replacer.Replace(s) }

// begun returns how many bytes at the end may be the beginning of a secret.
func (m *mask) begun(b []byte) (most int) {
	for _, form := range m.forms {
		for n := min(len(form)-1, len(b)); n > most; n-- {
			if bytes.HasSuffix(b, form[:n]) {
				most = n
			}
		}
	}
	return most
}

// within reports whether b contains a secret.
func (m *mask) within(b []byte) bool {
	return slices.ContainsFunc(m.forms, func(form []byte) bool { return bytes.Contains(b, form) })
}

// conceal removes secrets from an answer: from its headers at once, and from its body as it is read.
func (d *doer) conceal(resp *http.Response, x *exchange) {
	id := requestID(resp.Header)
	for _, values := range resp.Header {
		for i := range values {
			values[i] = d.bad.text(values[i])
		}
	}
	x.masked = requestID(resp.Header) != id // the only header that goes into a row
	m := d.bad
	if resp.StatusCode/100 == 2 {
		m = d.good
	}
	if len(m.forms) == 0 {
		return
	}
	resp.Body = &maskedBody{ReadCloser: resp.Body, mask: m, x: x}
}

// maskedBody is a body without secrets, also those that are split between two reads.
type maskedBody struct {
	io.ReadCloser
	mask *mask
	x    *exchange
	held []byte // may be the beginning of a secret
	out  []byte // is to be passed on
	end  error
}

func (b *maskedBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 && b.end == nil {
		n, err := b.ReadCloser.Read(p)
		if len(b.held) == 0 && !b.mask.within(p[:n]) && b.mask.begun(p[:n]) == 0 {
			return n, err // the usual case
		}
		b.take(p[:n], err)
	}
	n := copy(p, b.out)
	if b.out = b.out[n:]; len(b.out) > 0 {
		return n, nil
	}
	return n, b.end
}

// take adds what was read.
func (b *maskedBody) take(p []byte, end error) {
	const most = 8 // bytes of a secret that may remain at the end of a body that was cut
	b.held, b.end = append(b.held, p...), end
	if b.mask.within(b.held) {
		b.x.masked = true
		b.held = []byte(b.mask.text(string(b.held)))
	}
	begun := b.mask.begun(b.held)
	b.out, b.held = b.held[:len(b.held)-begun], b.held[len(b.held)-begun:]
	switch {
	case end == nil:
	case begun > most:
		b.x.masked = true
		b.out = append(b.out[:len(b.out):len(b.out)], masked...)
	default:
		b.out = append(b.out, b.held...)
	}
}

// concealSplit removes secrets that were split over several chunks of a stream.
func (d *doer) concealSplit(x *exchange, reply *Reply) {
	conceal := func(text *string) {
		if clean := d.good.text(*text); clean != *text {
			*text, x.masked = clean, true
		}
	}
	conceal(&reply.Message.Content)
	conceal(&reply.Message.Reasoning)
	conceal(&reply.Raw)
	if details := string(reply.Message.ReasoningDetails); details != "" {
		conceal(&details)
		reply.Message.ReasoningDetails = []byte(details)
	}
	for i := range reply.Message.Calls {
		conceal(&reply.Message.Calls[i].Name)
		conceal(&reply.Message.Calls[i].Arguments)
	}
	for i := range reply.Repairs { // which name calls
		conceal(&reply.Repairs[i])
	}
}
