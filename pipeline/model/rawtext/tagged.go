package rawtext

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
)

// Qwen3-Coder writes, with a newline on either side of each value that is not part of it, and Seed-OSS without:
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

var coder = &grammar{
	opener: functionOpen, closer: functionClose,
	follow:   []string{parameterOpen, functionClose, callClose, seedClose, functionOpen, callOpen + "\n" + functionOpen},
	next:     regexp.MustCompile(`^(?:</(?:seed:)?tool_call>|<function=|<tool_call>\s*<function=)`),
	resume:   []string{functionOpen, functionClose, callClose},
	argument: parameterOpen, head: regexp.MustCompile(`^<parameter=["' ]*([^>]*?)["' ]*()>`), end: "</parameter>", lines: true,
	nextKey:  regexp.MustCompile(`<parameter=["']?([^>\n"']{1,200})["']?>`),
	nextCall: regexp.MustCompile(`\n</function>\s*</tool_call>\s*<tool_call>\s*<function=`),
	tail:     regexp.MustCompile(`\n</function>\s*(?:</(?:seed:)?tool_call>\s*)?$`),
}

// functions reads the functions at text[at:]; closer ends the tag within which they stand, if they do.
func (w *walker) functions(at int, closer string) (end int, called bool) {
	within := closer != ""
	for strings.HasPrefix(w.text[at:], functionOpen) {
		k := w.opening(coder, at, within, within)
		// Without a <tool_call> in front of it the name alone does not make it one.
		if k == nil || !within && k.tool == nil && !startsWith(w.text[space(w.text, k.at):], parameterOpen, functionClose) || !k.read() {
			break
		}
		called, at = true, k.at
		if next := space(w.text, at); within && strings.HasPrefix(w.text[next:], functionOpen) {
			at = next
		}
	}
	if called {
		at, _ = closed(w.text, at, cmp.Or(closer, callClose))
	}
	return at, called
}

// opening reads the opener of a call at text[at:] with its name, up to a ">". It is nil when there is no name; the two
// tell whether that is a call that was cut off, or a broken one.
func (w *walker) opening(g *grammar, at int, cut, isCall bool) *keyed {
	at += len(g.opener)
	name, _, ok := strings.Cut(w.text[at:min(len(w.text), at+200)], ">")
	if trimmed := strings.Trim(name, `"' `); ok && tagName(trimmed) {
		return w.keyed(g, trimmed, at+len(name)+len(">"))
	}
	if cut && !ok && at+len(name) == len(w.text) {
		w.note(truncated, "")
	} else if isCall {
		w.note(broken, "")
	}
	return nil
}

// Several models write a call as one tag within another, each with a name of its own before the words: DeepSeek V3.2 and
// V4 (｜DSML｜), MiniMax M2 (none), Step 3 (steptml:). DeepSeek says of each value whether it is a text, or writes all
// arguments as one object.
//
//	<｜DSML｜function_calls>
//	<｜DSML｜invoke name="a">
//	<｜DSML｜parameter name="key" string="true">value</｜DSML｜parameter>
//	</｜DSML｜invoke>
//	</｜DSML｜function_calls>
//
//	<minimax:tool_call>
//	<invoke name="a">
//	<parameter name="key">value</parameter>
//	</invoke>
//	</minimax:tool_call>
var invokeOpeners = []string{
	"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<minimax:tool_call>", "<function_calls>", "<steptml:toolcall>", stepSection,
	"<｜DSML｜invoke name=", "<invoke name=", "<steptml:invoke name=", stepCall,
}

// What Step 3 puts around all calls, and around each.
const (
	stepSection = "<｜tool_calls_begin｜>"
	stepCall    = "<｜tool_call_begin｜>function<｜tool_sep｜>"
)

// invokeClosers end all calls, or what is around one.
var invokeClosers = []string{
	"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>", "</minimax:tool_call>", "</function_calls>", "</steptml:toolcall>",
	"<｜tool_call_end｜>", "<｜tool_calls_end｜>",
}

// invocations are made when the first is read: their expressions would take a thirtieth of the program's start.
var invocations = sync.OnceValue(func() []*grammar {
	return []*grammar{invocation("｜DSML｜"), invocation("steptml:"), invocation("")}
})

func invocation(prefix string) *grammar {
	opener, closer, argument := "<"+prefix+"invoke name=", "</"+prefix+"invoke>", "<"+prefix+"parameter name="
	return &grammar{
		opener: opener, closer: closer,
		follow: []string{argument, closer, opener}, around: invokeClosers,
		next:     regexp.MustCompile(`^` + opener),
		resume:   []string{opener, closer},
		argument: argument, head: regexp.MustCompile(`^` + argument + `["']?\s*([^"'>\n]{1,200}?)\s*["']?(?:\s+string="(true|false)")?\s*>`),
		end:      "</" + prefix + "parameter>",
		nextKey:  regexp.MustCompile(argument + `["']?([^"'>\n]{1,200})["']?[^>\n]{0,40}>`),
		nextCall: regexp.MustCompile(closer + `\s*` + opener),
		tail:     regexp.MustCompile(closer + `\s*(?:</[^<>\n]{1,40}>\s*)?$`),
	}
}

// readInvokes reads the calls at an opener, which may be around them.
func readInvokes(w *walker, at int, opener string) (end int, called bool) {
	if !strings.HasSuffix(opener, "name=") {
		at = space(w.text, at+len(opener))
		at, _ = after(w.text, at, stepCall)
	}
	for {
		next, ok := w.invoke(space(w.text, at))
		if !ok {
			return at, called
		}
		called = true
		at, _ = after(w.text, closedBy(w.text, next, invokeClosers...), stepCall)
	}
}

// invoke reads one call.
func (w *walker) invoke(at int) (end int, ok bool) {
	for _, g := range invocations() {
		if !strings.HasPrefix(w.text[at:], g.opener) {
			continue
		}
		k := w.opening(g, at, true, false)
		if k == nil {
			return at, false
		}
		if args := space(w.text, k.at); isObject(w.text[args:]) {
			return w.objectCall(Call{Name: k.name}, args, g.closer, func(from int) int { return earliest(w.text, from, g.resume...) }), true
		}
		ok := k.read()
		return k.at, ok
	}
	return at, false
}

// GLM writes, with (4.5, 4.6) or without (4.7, 5) newlines between the tags:
//
//	<tool_call>name
//	<arg_key>key</arg_key>
//	<arg_value>value</arg_value>
//	</tool_call>
var glm = &grammar{
	opener: callOpen, closer: callClose,
	follow:   []string{"<arg_key>", callClose, callOpen},
	next:     regexp.MustCompile(`^<tool_call>`),
	bare:     true,
	resume:   []string{callOpen, callClose},
	argument: "<arg_key>", head: regexp.MustCompile(`(?s)^<arg_key>\s*(.*?)\s*()</arg_key>`), value: "<arg_value>", end: "</arg_value>", escaped: true,
	nextKey:  regexp.MustCompile(`<arg_key>([^<]{1,200})</arg_key>\s*<arg_value>`),
	nextCall: regexp.MustCompile(`</tool_call>\s*<tool_call>\s*[^\s<>]{1,128}\s*<arg_key>`),
	tail:     regexp.MustCompile(`</tool_call>\s*$`),
}

// readGLM reads one call. Where a text only mentions <tool_call>, no name and tag follow it.
func readGLM(w *walker, at int, opener string) (end int, called bool) {
	start := space(w.text, at+len(opener))
	head := w.text[start:min(len(w.text), start+200)]
	length := strings.IndexAny(head, "\n<")
	if length < 0 {
		if tagName(head) && len(head) < 200 {
			w.note(truncated, "")
		}
		return start, false
	}
	name := strings.TrimSuffix(strings.TrimSpace(head[:length]), `\n`) // some write the newline as an escape
	if !tagName(name) {
		if strings.Contains(head, glm.argument) {
			w.note(broken, "")
		}
		return start, false
	}
	k := w.keyed(glm, name, start+length)
	if !k.read() {
		return start, false
	}
	return k.at, true
}
