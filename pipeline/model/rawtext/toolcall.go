package rawtext

import "strings"

const (
	callOpen  = "<tool_call>"
	callClose = "</tool_call>"
)

// readToolCall reads what stands between <tool_call> and </tool_call>: an envelope of JSON as Hermes and Qwen write it,
// and others in tags of their own, or a function of tags as Qwen3-Coder and Seed-OSS do. Models of the Qwen family take the one for
// the other when they were quantised or trained further, and no body can be mistaken for the other kind.
func readToolCall(w *walker, at int, opener string) (end int, called bool) {
	body := space(w.text, at+len(opener))
	switch {
	case opener == functionOpen: // its <tool_call> is the part that Qwen3-Coder forgets
		return w.functions(at, "")
	case strings.HasPrefix(w.text[body:], functionOpen):
		return w.functions(body, "</"+opener[1:])
	}
	return w.envelopes(body, opener, "</"+opener[1:])
}

// envelopes reads those from text[at:] to the closing tag. There should be one; several come with commas, in a list, or
// without anything between them.
func (w *walker) envelopes(at int, opener, closer string) (end int, called bool) {
	for {
		at = fillers(w.text, at)
		if end, ok := closed(w.text, at, closer); ok {
			return end, called
		}
		if !isObject(w.text[at:]) {
			break
		}
		var e envelope
		limit, st := e.read(w.text, at, 0)
		if st != isWhole && e.state != isWhole {
			latest := find(w.text[:find(w.text, limit, opener)], limit, closer)
			limit = callEnd(w.text, at, limit, latest, closer, []string{opener})
		} else if st == isBroken {
			limit = find(w.text[:find(w.text, limit, opener)], limit, closer)
		}
		if !w.envelope(e, st, limit) {
			w.lost(st == isCut)
			if !called {
				return limit, false
			}
			break
		}
		called, at = true, limit
	}
	if !called {
		return at, false
	}
	return w.leave(at, opener, closer), true
}

// leave ends a call that its closing tag does not follow at once: text between them is content.
func (w *walker) leave(at int, opener, closer string) int {
	next := find(w.text, at, opener)
	if end := find(w.text[:next], at, closer); end < next {
		w.between = w.text[at:end]
		end, _ = closed(w.text, end, closer)
		return end
	}
	at, _ = closed(w.text, at, closer) // a part of it
	if last := &w.Calls[len(w.Calls)-1]; !last.Cut && !last.Repaired {
		last.Repaired = true
		w.note(unclosed, last.Name)
	}
	return at
}

// fillers skips what models put around an envelope that its tags already hold: a list, commas, a code fence, one brace
// too many.
func fillers(text string, at int) int {
	for at = space(text, at); at < len(text); at = space(text, at) {
		switch text[at] {
		case '[', ']', ',', ';', '}':
			at++
		case '`':
			if !strings.HasPrefix(text[at:], "```") {
				return at
			}
			at += len("```")
			if strings.HasPrefix(text[at:], "json") {
				at += len("json")
			}
		default:
			return at
		}
	}
	return at
}
