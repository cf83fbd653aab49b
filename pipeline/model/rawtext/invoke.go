package rawtext

import (
	"encoding/json"
	"regexp"
	"strings"
)

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

// invokeTags are the tags of a family.
type invokeTags struct {
	opener, closer, parameter string
	values                    valueTags
	head                      *regexp.Regexp // of a parameter
}

var invokeFamilies = func() (all []*invokeTags) {
	for _, prefix := range []string{"｜DSML｜", "steptml:", ""} {
		t := &invokeTags{opener: "<" + prefix + "invoke name=", closer: "</" + prefix + "invoke>", parameter: "<" + prefix + "parameter name="}
		t.head = regexp.MustCompile(`^` + t.parameter + `["']?([^"'>\n]{1,200})["']?(?:\s+string="(true|false)")?\s*>`)
		t.values = valueTags{
			closer:   "</" + prefix + "parameter>",
			follow:   []string{t.parameter, t.closer, t.opener},
			nextKey:  regexp.MustCompile(t.parameter + `["']?([^"'>\n]{1,200})["']?[^>\n]{0,40}>`),
			nextCall: regexp.MustCompile(t.closer + `\s*` + t.opener),
			end:      regexp.MustCompile(t.closer + `\s*(?:</[^<>\n]{1,40}>\s*)?$`),
		}
		all = append(all, t)
	}
	return all
}()

// invokeClosers end all calls, or what is around one.
var invokeClosers = []string{
	"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>", "</minimax:tool_call>", "</function_calls>", "</steptml:toolcall>",
	"<｜tool_call_end｜>", "<｜tool_calls_end｜>",
}

// invokes reads the calls at an opener, which may be around them.
func (w *walker) invokes(at int, opener string) (end int, called bool) {
	if !strings.HasSuffix(opener, "name=") {
		at = space(w.text, at+len(opener))
		at, _ = after(w.text, at, stepCall)
	}
	for {
		next, ok := w.invoke(space(w.text, at))
		if !ok {
			break
		}
		called, at = true, next
		for _, closer := range invokeClosers {
			at, _ = closed(w.text, at, closer)
		}
		at, _ = after(w.text, at, stepCall)
	}
	return at, called
}

// invoke reads one call.
func (w *walker) invoke(at int) (end int, ok bool) {
	for _, tags := range invokeFamilies {
		if !strings.HasPrefix(w.text[at:], tags.opener) {
			continue
		}
		v := invocation{keyed: keyed{walker: w, tags: tags.values, encode: (*tool).encode}, invokeTags: tags}
		start := at + len(tags.opener)
		name, _, found := strings.Cut(w.text[start:min(len(w.text), start+200)], ">")
		v.name = strings.Trim(name, `"' `)
		if !found || !tagName(v.name) {
			if !found && start+len(name) == len(w.text) {
				w.note(truncated, "")
			}
			return start, false
		}
		v.begin(start + len(name) + 1)
		if isObject(w.text[space(w.text, v.at):]) {
			return v.object()
		}
		st := v.parameters()
		if st == isBroken {
			v.at = earliest(w.text, v.at, tags.opener, tags.closer)
		}
		ok := v.finish(st)
		v.at, _ = closed(w.text, v.at, tags.closer)
		return v.at, ok
	}
	return at, false
}

type invocation struct {
	keyed
	*invokeTags
}

// object reads the arguments as one object.
func (v *invocation) object() (end int, ok bool) {
	at := space(v.text, v.at)
	end, st := jsonValue(v.text, at)
	call, problem := Call{Name: v.name, Arguments: v.text[at:end]}, ""
	switch st {
	case isCut:
		call.Cut, problem = true, truncated
	case isBroken:
		end = earliest(v.text, end, v.opener, v.closer)
		call.Arguments, problem = strings.TrimSpace(v.text[at:end]), broken
	}
	v.add(call, problem)
	end, _ = closed(v.text, end, v.closer)
	return end, true
}

// parameters reads up to the end of the call.
func (v *invocation) parameters() state {
	for {
		at := space(v.text, v.at)
		rest := v.text[at:]
		switch {
		case strings.HasPrefix(rest, v.closer):
			v.at = at
			return isWhole
		case strings.HasPrefix(rest, v.opener):
			v.problem = unclosed
			return isWhole
		case strings.HasPrefix(rest, v.parameter):
			head := v.head.FindStringSubmatch(rest[:min(len(rest), 300)])
			switch {
			case head == nil && len(rest) < 300:
				return v.cut()
			case head == nil:
				return isBroken
			}
			v.encode = map[string]func(*tool, string, string) string{"": (*tool).encode, "true": asText, "false": asJSON}[head[2]]
			if st := v.value(strings.TrimSpace(head[1]), at+len(head[0])); st != isWhole {
				return st
			}
		case partOf(rest, v.closer, v.opener, v.parameter), rest != "" && partOf(rest, invokeClosers...):
			return v.atEnd()
		default:
			return isBroken
		}
	}
}

// asText encodes what the model says is a text.
func asText(_ *tool, _, value string) string { return quote(value) }

// asJSON encodes what the model says is none.
func asJSON(t *tool, name, value string) string {
	if text := strings.TrimSpace(value); json.Valid([]byte(text)) {
		return text
	}
	return t.encode(name, value)
}
