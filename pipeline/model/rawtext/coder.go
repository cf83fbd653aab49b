package rawtext

import (
	"cmp"
	"regexp"
	"strings"
)

// Qwen3-Coder writes, with a newline on either side of each value that is not part of it:
//
//	<tool_call>
//	<function=name>
//	<parameter=key>
//	value
//	</parameter>
//	</function>
//	</tool_call>
const (
	functionOpen  = "<function="
	functionClose = "</function>"
	parameterOpen = "<parameter="
	seedClose     = "</seed:tool_call>"
)

var coderValues = valueTags{
	closer:   "</parameter>",
	lines:    true,
	follow:   []string{parameterOpen, functionClose, callClose, seedClose, functionOpen, callOpen + "\n" + functionOpen},
	nextKey:  regexp.MustCompile(`<parameter=["']?([^>\n"']{1,200})["']?>`),
	nextCall: regexp.MustCompile(`\n</function>\s*</tool_call>\s*<tool_call>\s*<function=`),
	end:      regexp.MustCompile(`\n</function>\s*(?:</(?:seed:)?tool_call>\s*)?$`),
}

var nextFunction = regexp.MustCompile(`^<tool_call>\s*<function=`)

// functions reads the functions at text[at:]; closer ends the tag within which they stand, if they do.
func (w *walker) functions(at int, closer string) (end int, called bool) {
	within := closer != ""
	for strings.HasPrefix(w.text[at:], functionOpen) {
		f := function{keyed: keyed{walker: w, at: at + len(functionOpen), tags: coderValues, encode: (*tool).encode}}
		if !f.read(within) {
			break
		}
		called, at = true, f.at
		if next := space(w.text, at); within && strings.HasPrefix(w.text[next:], functionOpen) {
			at = next
		}
	}
	if called {
		at, _ = closed(w.text, at, cmp.Or(closer, callClose))
	}
	return at, called
}

// function is one of them while it is read.
type function struct{ keyed }

// read goes through a function from behind "<function=" on and adds its call. Without a <tool_call> in front of it the
// name alone does not make it one.
func (f *function) read(within bool) bool {
	head, rest, ok := strings.Cut(f.text[f.at:min(len(f.text), f.at+200)], ">")
	f.name = strings.Trim(head, `"' `)
	if !ok || !tagName(f.name) {
		if within && !ok && f.at+len(head) == len(f.text) {
			f.note(truncated, "")
		} else if within {
			f.note(broken, "")
		}
		return false
	}
	f.begin(f.at + len(head) + 1)
	rest = strings.TrimLeft(rest, " \t\r\n")
	if !within && f.tool == nil && !startsWith(rest, parameterOpen, functionClose) {
		return false
	}
	st := f.parameters()
	if st == isBroken {
		f.at = earliest(f.text, f.at, functionOpen, functionClose, callClose)
	}
	added := f.finish(st)
	f.at, _ = closed(f.text, f.at, functionClose)
	return added
}

// parameters reads up to the end of the function.
func (f *function) parameters() state {
	for {
		at := space(f.text, f.at)
		rest := f.text[at:]
		switch {
		case strings.HasPrefix(rest, functionClose):
			f.at = at
			return isWhole
		case startsWith(rest, callClose, seedClose, functionOpen), nextFunction.MatchString(rest):
			f.problem = unclosed
			return isWhole
		case strings.HasPrefix(rest, parameterOpen):
			key, _, ok := strings.Cut(rest[len(parameterOpen):min(len(rest), 300)], ">")
			if !ok && len(rest) < 300 {
				return f.cut()
			} else if !ok {
				return isBroken
			}
			start := at + len(parameterOpen) + len(key) + len(">")
			if st := f.value(strings.Trim(key, `"' `), start); st != isWhole {
				return st
			}
		case partOf(rest, functionClose, callClose, seedClose, functionOpen, parameterOpen, callOpen+"\n"+functionOpen):
			return f.atEnd()
		default:
			return isBroken
		}
	}
}
