package rawtext

import "strings"

// tokens are what a family puts around calls that stand on tokens which only calls have, with the arguments as JSON
// between them.
type tokens struct {
	sections  []string // begin all calls
	call      string   // begins one
	separator string   // stands behind its name
	end       string   // ends it
	ends      []string // end all calls
}

// Kimi K2 writes the id of the call in front of its arguments. It is its name and a number, and stays as it is: the
// model counts on. Some models drop the s of the sections.
//
//	<|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{...}<|tool_call_end|>
//	<|tool_calls_section_end|>
var kimi = tokens{
	sections: []string{"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"},
	call:     "<|tool_call_begin|>", separator: "<|tool_call_argument_begin|>", end: "<|tool_call_end|>",
	ends: []string{"<|tool_calls_section_end|>", "<|tool_call_section_end|>"},
}

// DeepSeek has two formats, and models of one take the other for theirs. V3 and R1 write
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name
//	```json
//	{...}
//	```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// and V3.1 writes name<｜tool▁sep｜>{...} between the tokens of the call.
var deepseek = tokens{
	sections: []string{"<｜tool▁calls▁begin｜>"},
	call:     "<｜tool▁call▁begin｜>", separator: "<｜tool▁sep｜>", end: "<｜tool▁call▁end｜>",
	ends: []string{"<｜tool▁calls▁end｜>"},
}

func (t tokens) openers() []string { return append([]string{t.call}, t.sections...) }

// maxHead bounds the name of a function with the tags around it.
const maxHead = 400

// headed reads a call up to the separator behind its name, and the rest with args, from where on it gets the text.
func (w *walker) headed(t tokens, at int, opener string, args func(name string, at int) (end int, called bool)) (end int, called bool) {
	at += len(opener)
	if opener != t.call {
		next, ok := after(w.text, at, t.call)
		if !ok {
			return at, false
		}
		at = next
	}
	head := w.text[at:min(len(w.text), at+maxHead)]
	if name, _, ok := strings.Cut(head, t.separator); ok {
		return args(name, at+len(name)+len(t.separator))
	}
	return w.headless(at)
}

// headless is a call whose name at text[at:] did not come to its end.
func (w *walker) headless(at int) (int, bool) {
	w.lost(len(w.text)-at < maxHead)
	return at, false
}

func readKimi(w *walker, at int, opener string) (end int, called bool) {
	return w.headed(kimi, at, opener, func(id string, at int) (int, bool) {
		call := Call{ID: strings.TrimSpace(id)}
		call.Name = strings.TrimPrefix(call.ID, "functions.")
		if colon := strings.LastIndexByte(call.Name, ':'); colon >= 0 && strings.Trim(call.Name[colon+1:], "0123456789") == "" {
			call.Name = call.Name[:colon]
		} else {
			call.ID = "" // without its number it is no id
		}
		return w.tokenCall(call, at, kimi)
	})
}

func readDeepseek(w *walker, at int, opener string) (end int, called bool) {
	return w.headed(deepseek, at, opener, func(name string, at int) (int, bool) {
		if start := space(w.text, at); strings.TrimSpace(name) == "function" && start < len(w.text) && w.text[start] != '{' && w.text[start] != '`' {
			length := strings.IndexAny(w.text[start:min(len(w.text), start+maxHead)], "\r\n`{<")
			if length < 0 {
				return w.headless(start)
			}
			name, at = w.text[start:start+length], start+length
		}
		at, _ = after(w.text, at, "```json", "```")
		return w.tokenCall(Call{Name: strings.TrimSpace(name)}, at, deepseek)
	})
}

// tokenCall reads the arguments at text[at:] up to the token that ends the call, and those that end all calls. What
// comes between the arguments and that token makes the call a broken one.
func (w *walker) tokenCall(call Call, at int, t tokens) (end int, called bool) {
	at = space(w.text, at)
	end, st := jsonValue(w.text, at)
	follow := append([]string{t.call}, t.ends...)
	behind, limit := at, earliest(w.text, end, append(follow, t.end)...)
	if st == isWhole {
		behind, _ = after(w.text, end, "```")
		behind = space(w.text, behind)
	} else {
		limit = callEnd(w.text, at, end, limit, t.end, follow)
	}
	problem := ""
	switch {
	case !tagName(call.Name), strings.HasPrefix(w.text[at:], `{\"`): // the latter is a call in a string
		w.note(broken, "")
		return at, false
	case st == isWhole && (behind == limit || limit == len(w.text)):
		call.Arguments = w.text[at:end]
		if !strings.HasPrefix(w.text[limit:], t.end) {
			problem = unclosed
		}
		limit = behind
	case partOf(w.text[at:], t.end, "```json"): // no argument has begun
		w.note(truncated, "")
		return at, false
	case at == limit:
		call.Arguments, problem = "{}", noArguments
	case st == isCut:
		call.Arguments, call.Cut, problem = strings.TrimSpace(w.text[at:limit]), true, truncated
	default:
		call.Arguments, problem = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(w.text[at:limit]), "```")), broken
	}
	w.add(call, problem)
	return closedBy(w.text, limit, append([]string{t.end}, t.ends...)...), true
}

// callEnd is where a call ends whose arguments are not whole: behind text[at:] a string may have swallowed its end and
// what follows, up to text[end:], from where on it is at the latest limit.
func callEnd(text string, at, end, limit int, closer string, follow []string) int {
	for from := at; from < end; {
		p := find(text[:end], from, closer)
		if p == end {
			break
		}
		from = p + len(closer)
		if rest := text[space(text, from):]; rest == "" || startsWith(rest, follow...) {
			return p
		}
	}
	return limit
}
