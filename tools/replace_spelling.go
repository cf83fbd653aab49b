package tools

import (
	"bytes"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalized is a text in a simpler spelling, with a map to the original: byte i stands for the bytes from starts[i] to
// ends[i].
type normalized struct {
	text         []byte
	starts, ends []int32 // a file has at most maxFile bytes
}

func (n *normalized) add(text string, start, end int) {
	for i := range len(text) {
		n.text = append(n.text, text[i])
		n.starts, n.ends = append(n.starts, int32(start)), append(n.ends, int32(end))
	}
}

// collapseSpace replaces every run of spaces and tabs by one space.
func collapseSpace(text string) normalized {
	var n normalized
	for i := 0; i < len(text); {
		j := i
		for j < len(text) && (text[j] == ' ' || text[j] == '\t') {
			j++
		}
		if j > i {
			n.add(" ", i, j)
			i = j
			continue
		}
		n.add(text[i:i+1], i, i+1)
		i++
	}
	return n
}

var punctuation = map[rune]string{
	'\u2018': "'", '\u2019': "'", '\u201A': "'", '\u201B': "'", '\u2032': "'",
	'\u201C': `"`, '\u201D': `"`, '\u201E': `"`, '\u201F': `"`, '\u2033': `"`,
	'\u2010': "-", '\u2011': "-", '\u2012': "-", '\u2013': "-", '\u2014': "-", '\u2015': "-", '\u2212': "-",
	'\u2026': "...", '\u00A0': " ", '\u2007': " ", '\u202F': " ", '\u2009': " ",
}

// plainPunctuation spells quotes, dashes and spaces in ASCII, and combines accented letters.
func plainPunctuation(text string) normalized {
	var n normalized
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf && (i+1 == len(text) || text[i+1] < utf8.RuneSelf) {
			n.add(text[i:i+1], i, i+1)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if plain, ok := punctuation[r]; ok {
			n.add(plain, i, i+size)
			i += size
			continue
		}
		end := i + max(size, norm.NFC.NextBoundaryInString(text[i:], true))
		if piece := text[i:end]; norm.NFC.IsNormalString(piece) {
			for ; i < end; i++ {
				n.add(text[i:i+1], i, i+1)
			}
		} else {
			n.add(norm.NFC.String(piece), i, end)
		}
		i = end
	}
	return n
}

// findNormalized compares in a simpler spelling. A match neither begins nor ends within a word, or within the spelling of one
// original character.
func findNormalized(simplify func(string) normalized) func(text, old, new string, work *budget) places {
	return func(text, old, new string, work *budget) places {
		in, looked := simplify(text), simplify(old)
		wanted, same := looked.text, sharedEnds(old, new, looked)
		var found places
		for at, done := 0, 0; len(wanted) > 0; {
			i := bytes.Index(in.text[at:], wanted)
			if i < 0 {
				break
			}
			if !work.spend(len(wanted) + 8*len(new)) {
				return places{}
			}
			from, to := at+i, at+i+len(wanted)
			at = from + 1
			start, end := int(in.starts[from]), int(in.ends[to-1])
			if from > 0 && int(in.starts[from-1]) == start || to < len(in.ends) && int(in.ends[to]) == end ||
				withinWord(text, start) || withinWord(text, end) {
				continue
			}
			if from < done {
				found.overlap = true
				at = done
				continue
			}
			partial := start > 0 && text[start-1] != '\n'
			indents := newIndentMap(strings.Split(old, "\n"), strings.Split(text[start:end], "\n"), partial)
			changed, ok := same.apply(text[start:end], in, from, to), true
			if !indents.same() {
				changed, ok = indents.apply(new, partial)
			}
			if !ok {
				return places{}
			}
			found.edits = append(found.edits, edit{start, end, changed})
			if done = to; found.overlap {
				at = done
			}
		}
		return found
	}
}

// shared is what a new text has in common with the old one at both ends: there the file keeps its own spelling, as the model
// did not mean to change it.
type shared struct {
	new        string
	from, to   int // the changed part of the new text
	head, tail int // bytes of old's simple spelling, from its beginning and from its end
}

func sharedEnds(old, new string, n normalized) shared {
	from := 0
	for piece := firstPiece(old); piece != "" && piece == firstPiece(new[from:]); piece = firstPiece(old[from:]) {
		from += len(piece)
	}
	head := sort.Search(len(n.text), func(i int) bool { return int(n.ends[i]) > from })
	if head < len(n.text) {
		from = int(n.starts[head]) // not in the middle of a spelling
	}
	tail, end := len(old), len(new)
	for piece := lastPiece(old[from:]); piece != "" && piece == lastPiece(new[from:end]); piece = lastPiece(old[from:tail]) {
		tail, end = tail-len(piece), end-len(piece)
	}
	rest := sort.Search(len(n.text), func(i int) bool { return int(n.starts[i]) >= tail })
	if rest < len(n.text) {
		end += int(n.starts[rest]) - tail
	} else {
		end = len(new)
	}
	return shared{new, from, end, head, len(n.text) - rest}
}

// firstPiece returns the first run of white space, or the first character.
func firstPiece(text string) string {
	if rest := strings.TrimLeft(text, " \t"); len(rest) < len(text) {
		return text[:len(text)-len(rest)]
	}
	_, size := utf8.DecodeRuneInString(text)
	return text[:size]
}

func lastPiece(text string) string {
	if rest := strings.TrimRight(text, " \t"); len(rest) < len(text) {
		return text[len(rest):]
	}
	_, size := utf8.DecodeLastRuneInString(text)
	return text[len(text)-size:]
}

// apply returns the new text for a place in the file, whose simple spelling is in[from:to].
func (s shared) apply(place string, in normalized, from, to int) string {
	start, head, tail := int(in.starts[from]), len(place), len(place)
	clean := func(i int) bool { return i == from || i == to || in.starts[i] == in.ends[i-1] }
	if !clean(from+s.head) || !clean(to-s.tail) {
		return s.new
	}
	if from+s.head < to {
		head = int(in.starts[from+s.head]) - start
	}
	if s.tail > 0 {
		tail = int(in.starts[to-s.tail]) - start
	}
	return place[:head] + s.new[s.from:s.to] + place[tail:]
}

// withinWord reports whether an offset is inside a word.
func withinWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return isWord(before) && isWord(after)
}

func isWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
