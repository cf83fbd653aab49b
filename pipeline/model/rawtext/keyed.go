package rawtext

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// grammar is how a family of models writes a call as keys and values in tags.
type grammar struct {
	opener, closer string         // of a call; behind the opener comes its name
	follow         []string       // what stands behind an argument, or is a part of it where the text is cut
	around         []string       // what ends all calls
	next           *regexp.Regexp // the call has ended although its closer is missing
	bare           bool           // but not before its first argument
	resume         []string       // where reading goes on behind a call that is broken

	argument string         // begins an argument
	head     *regexp.Regexp // of an argument: its key, and whether the model says that the value is a text
	value    string         // a tag between the head and the value
	end      string         // closes a value
	lines    bool           // the template puts each value on lines of its own
	escaped  bool           // lists and objects are written as in a string, and texts in quotes, now and then
	nextKey  *regexp.Regexp // the first group is the key's name
	nextCall *regexp.Regexp // the call has ended and another begun
	tail     *regexp.Regexp // the call has ended, and the text
}

// keyed is a call of such a format while it is read.
type keyed struct {
	*walker
	*grammar
	name    string
	tool    *tool // nil when the model was shown none of that name
	start   int   // of the arguments
	at      int
	pairs   pairs
	problem string
}

// keyed begins to read a call behind its name.
func (w *walker) keyed(g *grammar, name string, at int) *keyed {
	return &keyed{walker: w, grammar: g, name: name, tool: w.tools.find(name), start: at, at: at}
}

// read reads the arguments and adds the call, and says whether it is one.
func (k *keyed) read() bool {
	st := k.arguments()
	if st == isBroken {
		k.at = earliest(k.text, k.at, k.resume...)
	}
	added := k.finish(st)
	k.at, _ = closed(k.text, k.at, k.closer)
	return added
}

// arguments reads up to the end of the call.
func (k *keyed) arguments() state {
	for {
		at := space(k.text, k.at)
		rest := k.text[at:]
		switch {
		case strings.HasPrefix(rest, k.closer):
			k.at = at
			return isWhole
		case k.next.MatchString(rest) && (!k.bare || len(k.pairs.keys) > 0):
			k.problem = unclosed
			return isWhole
		case strings.HasPrefix(rest, k.argument):
			if st := k.pair(at); st != isWhole {
				return st
			}
		case partOf(rest, k.follow...), partOf(rest, k.around...):
			return k.atEnd()
		default:
			return isBroken
		}
	}
}

// pair reads a key and its value.
func (k *keyed) pair(at int) state {
	const most = 300
	rest := k.text[at:]
	head := k.head.FindStringSubmatch(rest[:min(len(rest), most)])
	switch {
	case head == nil && len(rest) < most:
		return k.cut()
	case head == nil:
		return isBroken
	}
	at += len(head[0])
	if k.value != "" {
		at, _ = after(k.text, at, `\n`) // some write the newline as an escape
		at = space(k.text, at)
		switch rest := k.text[at:]; {
		case strings.HasPrefix(rest, k.value):
			at += len(k.value)
		case partOf(rest, k.value):
			return k.cut()
		default:
			return isBroken
		}
	}
	return k.valueOf(head[1], head[2], at)
}

// valueOf reads the value of a key at text[start:].
//
// It may hold its closing tag, as a file about this format does: the tag that counts has behind it what can follow, or
// the end of the text. Where the closing tag is missing, the value ends at the next key that the tool has and that was
// not given yet, or at the end of the call.
func (k *keyed) valueOf(key, kind string, start int) state {
	limit := k.limit(start)
	end, after, first := endOfValue(k.text[:limit], start, k.end, k.follow)
	junk, next := first >= 0 && after < 0, end
	if !junk {
		next = k.keyBefore(end, key, start, first)
	}
	switch {
	case junk, first >= 0 && first < next && next < end:
		k.at = first + len(k.end)
		return isBroken // something stands between the arguments
	case next < end:
		end, after = next, next
	case after < 0:
		if end = k.unclosedEnd(start, limit); end < 0 {
			return k.cut()
		}
		after = end
	}
	if after == end {
		k.problem = unclosedValue
		k.note(unclosedValue, k.name)
		if strings.HasPrefix(k.text[end:], "\n") {
			end++
		}
	}
	value := k.text[start:end]
	if k.lines {
		value = withoutNewlines(value)
	} else if after <= end {
		value = strings.TrimSuffix(value, "\n")
	}
	if k.pairs.has(key) {
		k.note(repeated, k.name)
	}
	k.pairs.add(key, k.encode(key, kind, value))
	k.at = after
	return isWhole
}

// withoutNewlines takes off the newline on either side of a value.
func withoutNewlines(value string) string {
	value = strings.TrimPrefix(value, "\r")
	value = strings.TrimPrefix(value, "\n")
	value = strings.TrimSuffix(value, "\n")
	return strings.TrimSuffix(value, "\r")
}

// unclosedEnd is where a value without a closing tag ends when nothing follows it in its call, or -1 when that is not
// known.
func (k *keyed) unclosedEnd(start, limit int) int {
	if limit < len(k.text) {
		return limit
	}
	if tail := k.tail.FindStringIndex(k.text[start:]); k.ended && tail != nil {
		return start + tail[0]
	}
	return -1
}

// endOfValue finds the closing tag, if there is one with the right thing behind it, and the first of all; after and
// first are -1 when there is none.
func endOfValue(text string, start int, closer string, follow []string) (end, after, first int) {
	const most = 32 // tries: every value of a hostile text could hold the tag as often as it likes
	first = -1
	for from, i := start, 0; i < most; i++ {
		at := find(text, from, closer)
		if at == len(text) {
			break
		}
		from = at + len(closer)
		if first < 0 {
			first = at
		}
		if rest := text[space(text, from):]; startsWith(rest, follow...) || partOf(rest, follow...) {
			return at, from, first
		}
	}
	return len(text), -1, first
}

// keyBefore is where another argument begins before the end of this one, or that end. Where values stand on lines of
// their own, so do keys, unless the closing tag was there already.
func (k *keyed) keyBefore(end int, key string, start, closer int) int {
	if k.tool == nil {
		return end
	}
	for from := start; from < end; {
		m := k.nextKey.FindStringSubmatchIndex(k.text[from:end])
		if m == nil {
			break
		}
		name, at := strings.TrimSpace(k.text[from+m[2]:from+m[3]]), from+m[0]
		placed := !k.lines || k.text[at-1] == '\n' || closer >= 0 && closer < at
		if placed && name != key && k.tool.has(name) && !k.pairs.has(name) {
			return at
		}
		from += m[1]
	}
	return end
}

// limit is where another call certainly begins, or the end of the text. Without this a value that is not closed
// would swallow the calls behind it.
func (k *keyed) limit(start int) int {
	if k.boundary < start {
		k.boundary = len(k.text)
		if m := k.nextCall.FindStringIndex(k.text[start:]); m != nil {
			k.boundary = start + m[0]
		}
	}
	return k.boundary
}

// cut is a text that ended within the arguments.
func (k *keyed) cut() state {
	k.at = len(k.text)
	return isCut
}

// atEnd is a text that ended between the arguments: they are whole if the model was done.
func (k *keyed) atEnd() state {
	if k.cut(); !k.ended {
		return isCut
	}
	k.problem = unclosed
	return isWhole
}

// finish adds the call, which ends in front of text[at:], and says whether it is one. The arguments of a call that is
// not whole are what the model wrote, tags and all: made into JSON they would look like all that there is.
func (k *keyed) finish(st state) bool {
	if st == isWhole {
		k.add(Call{Name: k.name, Arguments: k.pairs.json()}, k.problem)
		return true
	}
	problem := truncated
	if st == isBroken {
		problem = broken
	}
	arguments := strings.TrimSpace(k.text[k.start:k.at])
	if arguments == "" || arguments[0] != '<' || !strings.Contains(arguments, ">") { // no argument has begun
		if st == isCut {
			k.note(truncated, "")
		}
		return false
	}
	k.add(Call{Name: k.name, Arguments: arguments, Cut: true}, problem)
	return true
}

// encode writes a value as JSON.
func (k *keyed) encode(key, kind, value string) string {
	text := strings.TrimSpace(value)
	switch {
	case kind == "true":
		return quote(value)
	case kind == "false" && json.Valid([]byte(text)):
		return text
	case k.escaped:
		value = unescaped(value, text, k.tool.types(key))
	}
	return k.tool.encode(key, value)
}

// unescaped is a value that may be written as it would stand in a string.
func unescaped(value, text string, types []string) string {
	var inner string
	switch {
	case slices.Equal(types, []string{"string"}) && !strings.HasPrefix(text, `"`):
	case strings.HasPrefix(text, `[`) || strings.HasPrefix(text, `{`):
		if !json.Valid([]byte(text)) && json.Unmarshal([]byte(`"`+text+`"`), &inner) == nil && json.Valid([]byte(inner)) {
			return inner
		}
	case len(types) > 0 && strings.HasPrefix(text, `"`) && json.Unmarshal([]byte(text), &inner) == nil:
		return inner
	}
	return value
}
