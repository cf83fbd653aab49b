package rawtext

import "strings"

// The formats below stand on tokens that only calls have, with the arguments as JSON between them.
const (
	kimiSection   = "<|tool_calls_section_begin|>"
	kimiEnd       = "<|tool_calls_section_end|>"
	kimiSection1  = "<|tool_call_section_begin|>" // some models drop the s
	kimiEnd1      = "<|tool_call_section_end|>"
	kimiCall      = "<|tool_call_begin|>"
	kimiArguments = "<|tool_call_argument_begin|>"
	kimiCallEnd   = "<|tool_call_end|>"

	deepseekCalls   = "<｜tool▁calls▁begin｜>"
	deepseekEnd     = "<｜tool▁calls▁end｜>"
	deepseekCall    = "<｜tool▁call▁begin｜>"
	deepseekSep     = "<｜tool▁sep｜>"
	deepseekCallEnd = "<｜tool▁call▁end｜>"
)

// maxHead bounds the name of a function with the tags around it.
const maxHead = 400

// kimi reads what Kimi K2 writes. The id of the call is its name and a number, and stays as it is: the model counts
// on.
//
//	<|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{...}<|tool_call_end|>
//	<|tool_calls_section_end|>
func (w *walker) kimi(at int, opener string) (end int, called bool) {
	end = at + len(opener)
	if opener != kimiCall {
		next, ok := after(w.text, end, kimiCall)
		if !ok {
			return end, false
		}
		end = next
	}
	head := w.text[end:min(len(w.text), end+maxHead)]
	id, _, ok := strings.Cut(head, kimiArguments)
	if !ok {
		return w.headless(end, head)
	}
	call := Call{ID: strings.TrimSpace(id)}
	call.Name = strings.TrimPrefix(call.ID, "functions.")
	if colon := strings.LastIndexByte(call.Name, ':'); colon >= 0 && strings.Trim(call.Name[colon+1:], "0123456789") == "" {
		call.Name = call.Name[:colon]
	} else {
		call.ID = "" // without its number it is no id
	}
	return w.tokenCall(call, end+len(id)+len(kimiArguments), kimiCall, kimiCallEnd, kimiEnd, kimiEnd1)
}

// deepseek reads both formats of DeepSeek, as models of one take the other for theirs. V3 and R1 write
//
//	<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name
//	```json
//	{...}
//	```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//
// and V3.1 writes name<｜tool▁sep｜>{...} between the tokens of the call.
func (w *walker) deepseek(at int, opener string) (end int, called bool) {
	end = at + len(opener)
	if opener != deepseekCall {
		next, ok := after(w.text, end, deepseekCall)
		if !ok {
			return end, false
		}
		end = next
	}
	head := w.text[end:min(len(w.text), end+maxHead)]
	name, rest, ok := strings.Cut(head, deepseekSep)
	if !ok {
		return w.headless(end, head)
	}
	begin := end
	end += len(name) + len(deepseekSep)
	if start := space(rest, 0); strings.TrimSpace(name) == "function" && start < len(rest) && rest[start] != '{' && rest[start] != '`' {
		length := strings.IndexAny(rest[start:], "\r\n`{<")
		if length < 0 {
			return w.headless(begin, head)
		}
		name = rest[start : start+length]
		end += start + length
	}
	end, _ = after(w.text, end, "```json", "```")
	return w.tokenCall(Call{Name: strings.TrimSpace(name)}, end, deepseekCall, deepseekCallEnd, deepseekEnd)
}

// headless is a call whose name did not come to its end.
func (w *walker) headless(end int, head string) (int, bool) {
	if len(head) < maxHead {
		w.note(truncated, "")
	} else {
		w.note(broken, "")
	}
	return end, false
}

// tokenCall reads the arguments at text[at:] up to the token that ends the call, and those that end all calls. What
// comes between the arguments and that token makes the call a broken one.
func (w *walker) tokenCall(call Call, at int, opener, closer string, enders ...string) (end int, called bool) {
	at = space(w.text, at)
	end, st := jsonValue(w.text, at)
	behind, limit := at, earliest(w.text, end, append([]string{opener, closer}, enders...)...)
	if st == isWhole {
		behind, _ = after(w.text, end, "```")
		behind = space(w.text, behind)
	} else {
		limit = callEnd(w.text, at, end, limit, closer, append([]string{opener}, enders...))
	}
	switch {
	case !tagName(call.Name), strings.HasPrefix(w.text[at:], `{\"`): // the latter is a call in a string
		w.note(broken, "")
		return at, false
	case st == isWhole && (behind == limit || limit == len(w.text)):
		call.Arguments = w.text[at:end]
		if strings.HasPrefix(w.text[limit:], closer) {
			w.add(call, "")
		} else {
			w.add(call, unclosed)
		}
		limit = behind
	case partOf(w.text[at:], closer, "```json"): // no argument has begun
		w.note(truncated, "")
		return at, false
	case at == limit:
		call.Arguments = "{}"
		w.add(call, noArguments)
	case st == isCut:
		call.Arguments, call.Cut = strings.TrimSpace(w.text[at:limit]), true
		w.add(call, truncated)
	default:
		call.Arguments = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(w.text[at:limit]), "```"))
		w.add(call, broken)
	}
	end, _ = closed(w.text, limit, closer)
	for _, ender := range enders {
		end, _ = closed(w.text, end, ender)
	}
	return end, true
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
