package faults

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// leaf is a value in a JSON text.
type leaf struct {
	pointer    string
	key        string // in its object; "" elsewhere
	start, end int    // in the text
	depth      int
	kind       byte   // '"' string, '0' number, 't' boolean, 'n' null, '[' list, '{' object
	text       string // of a string, unquoted; of others as it stands there
}

// deepest bounds how deep values may lie: a stranger writes them, and each pointer is as long as it is deep.
const deepest = 100

// leaves are the values of a JSON text in their order, lists and objects before what is in them; none of a text that lies too deep.
func leaves(text string) []leaf {
	w := walk{text: text, decoder: json.NewDecoder(strings.NewReader(text))}
	w.decoder.UseNumber()
	if w.value(leaf{}) != nil {
		return nil
	}
	return w.all
}

type walk struct {
	text    string
	decoder *json.Decoder
	all     []leaf
}

var errTooDeep = errors.New("the values lie too deep")

// value reads the next value into the leaf, which knows its place.
func (w *walk) value(l leaf) error {
	if l.depth > deepest {
		return errTooDeep
	}
	l.start = int(w.decoder.InputOffset())
	l.start += len(w.text[l.start:]) - len(strings.TrimLeft(w.text[l.start:], " \t\r\n:,"))
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	at := len(w.all)
	w.all = append(w.all, l)
	switch v := token.(type) {
	case json.Delim:
		l.kind = byte(v)
		for i := 0; w.decoder.More(); i++ {
			inner := leaf{depth: l.depth + 1, pointer: l.pointer + "/" + strconv.Itoa(i)}
			if v == '{' {
				key, err := w.decoder.Token()
				if err != nil {
					return err
				}
				inner.key, _ = key.(string)
				inner.pointer = l.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(inner.key)
			}
			if err := w.value(inner); err != nil {
				return err
			}
		}
		if _, err := w.decoder.Token(); err != nil {
			return err
		}
	case string:
		l.kind, l.text = '"', v
	case json.Number:
		l.kind = '0'
	case bool:
		l.kind = 't'
	default:
		l.kind = 'n'
	}
	l.end = int(w.decoder.InputOffset())
	if l.kind != '"' {
		l.text = w.text[l.start:l.end]
	}
	w.all[at] = l
	return nil
}

// with is the JSON text with another value for the leaf.
func (l leaf) with(text, value string) string { return text[:l.start] + value + text[l.end:] }

// withString is the JSON text with a string for the leaf.
func (l leaf) withString(text, value string) string { return l.with(text, quoted(value)) }

// quoted is a JSON string, without escapes for HTML.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// payload is the result's main text or value: the one that the tool declares, else the longest of the kinds that are wanted.
func (s *strike) payload(result, kinds string) (found leaf, ok bool) {
	for _, l := range leaves(result) {
		wanted := strings.IndexByte(kinds, l.kind) >= 0
		if declared := s.call.Tool.Payload; declared != "" && l.pointer == declared && wanted {
			return l, true
		}
		if wanted && (!ok || l.end-l.start > found.end-found.start) {
			found, ok = l, true
		}
	}
	return found, ok
}
