package rawtext

import "strings"

const pythonTag = "<|python_tag|>"

// readLlama reads the objects that Llama writes for calls, behind a <|python_tag|> or not, and one after the other with
// semicolons or newlines between them. Nothing but its members tells a call from an answer in JSON, so without the tag
// only the name of a tool that the model was shown makes one, together with arguments and nothing that a call has not.
//
//	{"name": "a", "parameters": {...}}; {"name": "b", "parameters": {...}}
func readLlama(w *walker, at int, opener string) (end int, called bool) {
	tagged := opener == pythonTag
	if tagged {
		at = space(w.text, at+len(opener))
	}
	if at < len(w.text) && w.text[at] == '[' {
		return w.llamaList(at, tagged)
	}
	for isObject(w.text[at:]) {
		next, ok := w.llamaCall(at, tagged)
		if !ok {
			if !called {
				return next, false
			}
			break
		}
		called, at = true, next
		if next, ok := after(w.text, at, ";", ","); ok {
			at = next
		}
		if next := space(w.text, at); isObject(w.text[next:]) {
			at = next
		}
		at = closedBy(w.text, at, "<|eom_id|>", "<|eot_id|>", "<|eot|>")
	}
	return at, called
}

// llamaCall reads one object.
func (w *walker) llamaCall(at int, tagged bool) (end int, ok bool) {
	var e envelope
	end, st := e.read(w.text, at, 0)
	limit := end
	if st == isBroken { // up to the end of its line, if that looks like the end of an object
		limit = earliest(w.text, end, "\n", "<|eo", pythonTag)
		for strings.HasSuffix(w.text[end:limit], ";") || strings.HasSuffix(w.text[end:limit], " ") {
			limit--
		}
	}
	known := goodName(e.name) && w.tools.find(e.name) != nil
	switch {
	case !tagged && (!known || !e.has || e.other || !isObject(e.arguments)),
		!tagged && st == isBroken && !strings.HasSuffix(w.text[end:limit], "}"):
		return limit, false
	}
	return limit, w.envelope(e, st, limit)
}

// llamaList reads a list: it is calls when every element is one.
func (w *walker) llamaList(at int, tagged bool) (end int, called bool) {
	if first := space(w.text, at+1); !isObject(w.text[first:]) {
		return at + 1, false
	}
	end, st := jsonValue(w.text, at)
	if st != isWhole {
		return end, false
	}
	before, said := len(w.Calls), len(w.Repairs)
	for at = space(w.text, at+1); at < end-1; {
		next, ok := 0, false
		if isObject(w.text[at:]) {
			next, ok = w.llamaCall(at, tagged)
		}
		if !ok {
			w.Calls, w.Repairs = w.Calls[:before], w.Repairs[:said]
			return end, false
		}
		at, _ = after(w.text, next, ",")
		at = space(w.text, at)
	}
	return end, true
}
