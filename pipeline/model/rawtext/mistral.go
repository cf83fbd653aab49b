package rawtext

import (
	"regexp"
	"strings"
	"unicode"
)

const (
	mistralCalls = "[TOOL_CALLS]"
	mistralID    = "[CALL_ID]"
	mistralArgs  = "[ARGS]"
)

// readMistral reads what stands behind a [TOOL_CALLS]. Tokenizers up to the tenth version have one in front of a list of
// envelopes, later ones have one in front of each call, without [CALL_ID] or [ARGS] where the server leaves those out:
//
//	[TOOL_CALLS] [{"name": "a", "arguments": {...}}, {"name": "b", ...}]
//	[TOOL_CALLS]a[CALL_ID]123456789[ARGS]{...}[TOOL_CALLS]b[ARGS]{...}
//
// A server that leaves out special tokens leaves a list without one, which is calls where it ends the reply.
func readMistral(w *walker, at int, opener string) (end int, called bool) {
	if opener == "[" {
		before := w.Calls
		end, called = w.llamaList(at, false)
		if called && space(w.text, end) < len(w.text) {
			w.Calls, called = before, false
		}
		return end, called
	}
	at = space(w.text, at+len(opener))
	if at < len(w.text) && (w.text[at] == '[' || w.text[at] == '{') {
		return w.mistralList(at)
	}
	begin := at
	head := w.text[at:min(len(w.text), at+maxHead)]
	length := strings.IndexAny(head, "[{")
	if length < 0 {
		if tagName(strings.TrimSpace(head)) && len(head) < maxHead {
			w.note(truncated, "")
		}
		return at, false
	}
	call := Call{Name: strings.TrimSpace(head[:length])}
	if !tagName(call.Name) {
		return at, false // prose
	}
	at += length
	if next, ok := after(w.text, at, mistralID); ok {
		stop := find(w.text[:min(len(w.text), next+100)], next, "[")
		call.ID = mistralCallID(strings.TrimSpace(w.text[next:stop]))
		at = stop
	}
	at, args := after(w.text, at, mistralArgs)
	if at = space(w.text, at); !isObject(w.text[at:]) && (!args || at == len(w.text)) {
		if partOf(w.text[at:], mistralArgs, mistralID) {
			w.note(truncated, "")
		}
		return begin, false
	}
	return w.objectCall(call, at, "</s>", func(from int) int { return find(w.text, from, mistralCalls) }), true
}

// readListed reads what others write as Mistral does, behind a token of their own and in front of another, or none.
func readListed(w *walker, at int, opener string) (end int, called bool) {
	at = space(w.text, at+len(opener))
	if at == len(w.text) || w.text[at] != '[' && w.text[at] != '{' {
		return at, false
	}
	end, called = w.mistralList(at)
	if called {
		end = closedBy(w.text, end, "<|/tool_call|>", "<|action_end|>", "<|END_ACTION|>")
	}
	return end, called
}

// mistralList reads a list of envelopes, or a single one.
func (w *walker) mistralList(at int) (end int, called bool) {
	list := w.text[at] == '['
	if list {
		at = space(w.text, at+1)
	}
	for isObject(w.text[at:]) {
		var e envelope
		end, st := e.read(w.text, at, 0)
		next := end
		if st == isBroken {
			end, next = w.nextEnvelope(end)
		}
		e.id = mistralCallID(e.id)
		if w.envelope(e, st, end) {
			called = true
		} else {
			w.lost(st == isCut)
		}
		if at = space(w.text, next); strings.HasPrefix(w.text[at:], ",") {
			at = space(w.text, at+1)
		}
	}
	if called {
		if list && strings.HasPrefix(w.text[at:], "]") {
			at++
		}
		at, _ = closed(w.text, at, "</s>")
	}
	return at, called
}

// mistralCallID is the id if the templates of Mistral take it back.
func mistralCallID(id string) string {
	if len(id) != 9 || strings.ContainsFunc(id, func(r rune) bool { return r > unicode.MaxASCII || !literal(byte(r)) || strings.ContainsRune("+-.", r) }) {
		return ""
	}
	return id
}

// anotherEnvelope is what a list goes on with behind an envelope that is broken. An argument hardly looks like this.
var anotherEnvelope = regexp.MustCompile(`\}\s*,\s*(\{\s*"name"\s*:\s*"[^"]{1,128}"\s*,\s*"arguments"\s*:)`)

// nextEnvelope is where the broken envelope ends that breaks at text[at:], and where the next one begins.
func (w *walker) nextEnvelope(at int) (end, next int) {
	if w.boundary < at {
		w.boundary = find(w.text, at, mistralCalls)
	}
	rest := w.text[at:w.boundary]
	if m := anotherEnvelope.FindStringSubmatchIndex(rest); m != nil {
		return at + m[0] + 1, at + m[2]
	}
	return at + len(strings.TrimRight(rest, " \t\r\n]")), w.boundary
}
