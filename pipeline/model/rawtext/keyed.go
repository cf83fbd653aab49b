package rawtext

import (
	"regexp"
	"strings"
)

// keyed is a call of a format that writes its arguments as keys and values in tags, while it is read.
type keyed struct {
	*walker
	tags    valueTags
	name    string
	tool    *tool // nil when the model was shown none of that name
	start   int   // of the arguments
	at      int
	pairs   pairs
	problem string
	encode  func(t *tool, name, value string) string
}

// valueTags are the tags around a value, and what tells that the closing one was forgotten.
type valueTags struct {
	closer   string
	follow   []string       // what stands behind it
	lines    bool           // the template puts each value on lines of its own
	nextKey  *regexp.Regexp // the first group is the key's name
	nextCall *regexp.Regexp // the call has ended and another begun
	end      *regexp.Regexp // the call has ended, and the text
}

func (k *keyed) begin(at int) { k.start, k.at, k.tool = at, at, k.tools.find(k.name) }

// value reads the value at text[start:].
//
// It may hold its closing tag, as a file about this format does: the tag that counts has behind it what can follow, or
// the end of the text. Where the closing tag is missing, the value ends at the next key that the tool has and that was
// not given yet, or at the end of the call.
func (k *keyed) value(key string, start int) state {
	limit := k.nextCall(start)
	end, after, first := endOfValue(k.text[:limit], start, k.tags.closer, k.tags.follow)
	junk, next := first >= 0 && after < 0, end
	if !junk {
		next = k.nextKey(key, start, end, first)
	}
	switch {
	case junk, first >= 0 && first < next && next < end:
		k.at = first + len(k.tags.closer)
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
	if k.tags.lines {
		value = withoutNewlines(value)
	} else if after <= end {
		value = strings.TrimSuffix(value, "\n")
	}
	if k.pairs.has(key) {
		k.note(repeated, k.name)
	}
	k.pairs.add(key, k.encode(k.tool, key, value))
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
	if tail := k.tags.end.FindStringIndex(k.text[start:]); k.ended && tail != nil {
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

// nextKey is where another argument begins before the end of this one, or that end. Where values stand on lines of
// their own, so do keys, unless the closing tag was there already.
func (k *keyed) nextKey(key string, start, end, closer int) int {
	if k.tool == nil {
		return end
	}
	for from := start; from < end; {
		m := k.tags.nextKey.FindStringSubmatchIndex(k.text[from:end])
		if m == nil {
			break
		}
		name, at := strings.TrimSpace(k.text[from+m[2]:from+m[3]]), from+m[0]
		placed := !k.tags.lines || k.text[at-1] == '\n' || closer >= 0 && closer < at
		if placed && name != key && k.tool.has(name) && !k.pairs.has(name) {
			return at
		}
		from += m[1]
	}
	return end
}

// nextCall is where another call certainly begins, or the end of the text. Without this a value that is not closed
// would swallow the calls behind it.
func (k *keyed) nextCall(start int) int {
	if k.boundary < start {
		k.boundary = len(k.text)
		if m := k.tags.nextCall.FindStringIndex(k.text[start:]); m != nil {
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
