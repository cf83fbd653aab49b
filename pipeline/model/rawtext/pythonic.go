package rawtext

import "strings"

// pythonicOpeners stand around calls that are written as Python: Llama 4's and LFM2's tags, which come and go, Olmo 3's,
// and the bare list of all of them.
var pythonicOpeners = []string{"<|python_start|>", "<|tool_call_start|>", "<function_calls>", "["}

var pythonicClosers = []string{"<|python_end|>", "<|tool_call_end|>", "</function_calls>", "<|eot|>", "<|eom|>"}

// readPythonic reads calls as Python writes them. Without tags only those of tools that the model was shown are calls.
//
//	[a(key="value", n=1), b()]
func readPythonic(w *walker, at int, opener string) (end int, called bool) {
	tagged := opener != "["
	if tagged {
		at = space(w.text, at+len(opener))
		if at < len(w.text) && isObject(strings.TrimLeft(w.text[at:], "[ \t\r\n")) { // LFM2 writes JSON, too
			end, called = w.mistralList(at)
			return pythonEnd(w.text, end), called
		}
	}
	list := strings.HasPrefix(w.text[at:], "[")
	if list {
		at++
	}
	before, p := w.Calls, python{text: w.text, at: at}
	for first := true; ; first = false {
		p.next(',')
		if start := space(w.text, p.at); list && strings.HasPrefix(w.text[start:], "]") || !list && !first && startsWith(w.text[start:], pythonicClosers...) {
			p.at = start
			break
		}
		call, ok := p.call()
		if !ok || !tagged && w.tools.find(call.Name) == nil {
			if space(w.text, p.at) == len(w.text) && tagged {
				w.note(truncated, "")
			}
			w.Calls = before
			return p.at, false
		}
		w.add(call, "")
		if !list && space(w.text, p.at) == len(w.text) {
			break
		}
	}
	if len(w.Calls) == len(before) {
		return at, false
	}
	if list {
		p.at++
	}
	return pythonEnd(w.text, p.at), true
}

func pythonEnd(text string, at int) int { return closedBy(text, at, pythonicClosers...) }

// call reads a call: a name, and arguments that all have one.
func (p *python) call() (call Call, ok bool) {
	if call.Name, ok = p.word(); !ok || !p.next('(') {
		return call, false
	}
	var arguments pairs
	ok = p.items(')', func(bool) bool {
		key, ok := p.word()
		if !ok || !p.next('=') {
			return false
		}
		p.out.Reset()
		ok = p.value(0)
		arguments.add(key, p.out.String())
		return ok
	})
	call.Arguments = arguments.json()
	return call, ok
}

// word reads a name.
func (p *python) word() (string, bool) {
	start := space(p.text, p.at)
	for p.at = start; p.at < len(p.text) && (literal(p.text[p.at]) && p.text[p.at] != '+' || p.text[p.at] == '_'); p.at++ {
	}
	word := p.text[start:p.at]
	return word, tagName(word)
}
