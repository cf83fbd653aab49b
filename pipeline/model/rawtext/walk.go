package rawtext

import (
	"regexp"
	"slices"
	"strings"
)

// walker goes through one content from front to back. Every byte is looked at a bounded number of times.
type walker struct {
	Result // as far as it was read
	text   string
	format string
	tools  tools
	ended  bool

	first   int // where the first call begins, and last where the last one ends
	last    int
	opener  string   // of the first call
	pieces  []string // content between calls
	between string   // content within the tags of the call that was just read
	code    code
	seen    int // code has read what is in front of this

	boundary int // where another call certainly begins; -1 before it is first looked for
}

// walk finds the openers and lets the format read what follows them.
func (w *walker) walk(f format) {
	w.boundary = -1
	var quoted []string
	for _, opener := range f.openers {
		quoted = append(quoted, regexp.QuoteMeta(opener))
	}
	openers := regexp.MustCompile(strings.Join(quoted, "|"))
	piece, from, hidden := 0, 0, false
	for found := openers.FindStringIndex(w.text); found != nil; found = openers.FindStringIndex(w.text[from:]) {
		at := from + found[0]
		opener := w.text[at : from+found[1]]
		w.code.read(w.text[w.seen:at])
		w.seen = at
		if w.code.inside() {
			from, hidden = at+len(opener), true
			continue
		}
		end, called := f.parse(w, at, opener)
		from = max(end, at+len(opener))
		if called {
			if w.pieces == nil {
				w.first, w.opener = at, opener
			}
			w.last = from
			w.pieces = append(w.pieces, w.text[piece:at])
			if w.between != "" {
				w.pieces = append(w.pieces, w.between)
				w.between = ""
			}
			piece, w.seen = from, from
			w.code.line = false
		}
	}
	w.pieces = append(w.pieces, w.text[piece:])
	if w.code.read(w.text[w.seen:]); hidden && w.code.fence != 0 {
		w.note(inFence, "")
	}
	w.Content = w.content()
}

// content joins what is left. A text without calls is left as it is.
func (w *walker) content() string {
	if len(w.pieces) == 1 {
		return w.text
	}
	var kept []string
	for i, piece := range w.pieces {
		if i > 0 {
			piece = strings.TrimLeft(piece, " \t\r\n")
		}
		if i < len(w.pieces)-1 {
			piece = strings.TrimRight(piece, " \t\r\n")
		}
		if piece != "" {
			kept = append(kept, piece)
		}
	}
	return strings.Join(kept, "\n")
}

// maxRepairs bounds what is said about one reply.
const maxRepairs = 16

// note records what was not as it should be.
func (r *Result) note(what, name string) {
	if name != "" {
		what += ": " + name
	}
	if len(r.Repairs) < maxRepairs && !slices.Contains(r.Repairs, what) {
		r.Repairs = append(r.Repairs, what)
	}
}

// lost records that a call cannot be read, as the text ended within it or for another reason.
func (r *Result) lost(cut bool) {
	if cut {
		r.note(truncated, "")
	} else {
		r.note(broken, "")
	}
}

// What Repairs says.
const (
	truncated     = "truncated call"         // the text ended within a call
	broken        = "broken call"            // it cannot be read
	unclosed      = "unclosed call"          // its arguments are whole, and something behind them is missing
	unclosedValue = "unclosed parameter"     // one ran into the next
	repeated      = "repeated parameter"     // the last one counts
	inFence       = "call in an open fence"  // which hides it, and was perhaps forgotten
	noArguments   = "call without arguments" // not even an empty object
	quotedObject  = "arguments in a string"
)

// add takes a call.
func (r *Result) add(call Call, problem string) {
	if problem != "" {
		r.note(problem, call.Name)
		call.Repaired = problem != truncated && problem != broken
	}
	r.Calls = append(r.Calls, call)
}

// space is where the white space at text[at:] ends.
func space(text string, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// after skips white space and one of the tags, if one is there.
func after(text string, at int, tags ...string) (end int, found bool) {
	start := space(text, at)
	for _, tag := range tags {
		if strings.HasPrefix(text[start:], tag) {
			return start + len(tag), true
		}
	}
	return at, false
}

// closed skips a closing tag, written twice or cut by the end of the text as it may be.
func closed(text string, at int, tag string) (end int, found bool) {
	for {
		next, ok := after(text, at, tag)
		if !ok {
			break
		}
		at, found = next, true
	}
	if rest := text[space(text, at):]; rest != "" && strings.HasPrefix(tag, rest) {
		return len(text), found
	}
	return at, found
}

// closedBy skips closing tags in their order.
func closedBy(text string, at int, tags ...string) int {
	for _, tag := range tags {
		at, _ = closed(text, at, tag)
	}
	return at
}

// find is strings.Index from a place on, and the end of the text when there is nothing.
func find(text string, from int, what string) int {
	if i := strings.Index(text[from:], what); i >= 0 {
		return from + i
	}
	return len(text)
}

// goodName tells the name of a function from a piece of prose. What is no tool's name still is a call: the model is
// told that there is no such tool.
func goodName(name string) bool {
	return name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\uFFFD' })
}

// tagName is a name in a format where only tags surround it.
func tagName(name string) bool {
	return goodName(name) && !strings.ContainsAny(name, " <>{}[]\"'`:,;=()")
}

// startsWith says whether a text begins with one of the tags.
func startsWith(text string, tags ...string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return strings.HasPrefix(text, tag) })
}

// partOf says whether a text is the beginning of one of the tags; an empty one is.
func partOf(text string, tags ...string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, text) })
}

// earliest is where the first of the tags is, or the end of the text.
func earliest(text string, from int, tags ...string) int {
	limit := len(text)
	for _, tag := range tags {
		limit = find(text[:limit], min(from, limit), tag)
	}
	return limit
}
