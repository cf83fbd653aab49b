package tools

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A strategy finds where old stands in a text and says what goes there. Its edits are in order and do not overlap. The
// confidence says how little a match leaves to chance; it orders the strategies and is no probability.
type strategy struct {
	name       string
	confidence float64
	find       func(text, old, new string, work *budget) []edit
}

// budget bounds the work of a search. Texts and patterns are a stranger's, and comparing every line with every line of
// a repetitive file would hold the runner for hours. What exceeds it counts as not found.
type budget struct{ left int }

// searchWork is about a second's.
const searchWork = 50_000_000

func (b *budget) spend(n int) bool {
	b.left -= n
	return b.left >= 0
}

// strategies are tried in this order; the first that finds anything wins. Each allows for one way in which a model's
// copy of a text differs from the text. None guesses: what is only alike is suggested in the error and never edited.
//
// There is no strategy for indentation alone, as line_trimmed finds all of that.
var strategies = []strategy{
	{exactStrategy, 1, findExact},
	{"line_trimmed", 0.95, findLines},
	{"whitespace_normalized", 0.9, findNormalized(collapseSpace)},
	{"escape_normalized", 0.85, findUnescaped},
	{"trimmed_boundary", 0.85, findTrimmed},
	{"unicode_normalized", 0.85, findNormalized(plainPunctuation)},
}

const exactStrategy = "exact"

// match is what was found, and how.
type match struct {
	strategy   string
	confidence float64
	edits      []edit
}

// findEdits returns the edits of the first strategy that finds old; none when old is nowhere.
func findEdits(text, old, new string) match {
	work := &budget{searchWork}
	for i, s := range strategies {
		if i > 0 && strings.TrimSpace(old) == "" {
			break // white space that is nearly like other white space is everywhere
		}
		if edits := s.find(text, old, new, work); len(edits) > 0 {
			return match{s.name, s.confidence, edits}
		}
	}
	return match{}
}

func findExact(text, old, new string, _ *budget) []edit {
	var edits []edit
	for at := 0; ; {
		n := strings.Index(text[at:], old)
		if n < 0 {
			return edits
		}
		edits = append(edits, edit{at + n, at + n + len(old), new})
		at += n + len(old)
	}
}

// findLines compares whole lines without the white space at both their ends.
func findLines(text, old, new string, work *budget) []edit {
	wanted, ended := splitLines(old)
	lines, offsets := linesOf(text)
	found := windows(trimAll(lines), trimAll(wanted), work)
	var edits []edit
	next := 0
	for _, i := range found {
		if i < next {
			continue // overlaps the match before
		}
		last := i + len(wanted) - 1
		end := offsets[last] + len(lines[last])
		if ended {
			end = offsets[last+1]
		}
		if !work.spend(8*len(new) + len(wanted)) {
			return nil
		}
		edits = append(edits, edit{offsets[i], end, newIndentMap(wanted, lines[i:last+1], false).apply(new, false)})
		next = last + 1
	}
	return edits
}

// windows finds where the wanted lines stand one after the other; overlaps are included.
func windows(lines, wanted []string, work *budget) []int {
	var found []int
	for at := 0; at+len(wanted) <= len(lines); at++ {
		n := 0
		for n < len(wanted) && lines[at+n] == wanted[n] {
			n++
		}
		if !work.spend(n + 1) {
			return nil
		}
		if n == len(wanted) {
			found = append(found, at)
		}
	}
	return found
}

// linesOf cuts a text and says where each line begins; the last offset is the end of the text.
func linesOf(text string) (lines []string, offsets []int) {
	lines, _ = splitLines(text)
	offsets = make([]int, 0, len(lines)+1)
	at := 0
	for _, line := range lines {
		offsets = append(offsets, at)
		at += len(line) + 1
	}
	return lines, append(offsets, len(text))
}

func trimAll(lines []string) []string {
	trimmed := make([]string, len(lines))
	for i, line := range lines {
		trimmed[i] = strings.TrimSpace(line)
	}
	return trimmed
}

// normalized is a text in a simpler spelling, with the way back: byte i of it stands for the bytes from starts[i] to
// ends[i] of the original.
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

// collapseSpace makes every run of spaces and tabs one space.
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

// plainPunctuation spells quotes, dashes and spaces in ASCII.
func plainPunctuation(text string) normalized {
	var n normalized
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if plain, ok := punctuation[r]; ok {
			n.add(plain, i, i+size)
		} else {
			for j := i; j < i+size; j++ {
				n.add(text[j:j+1], j, j+1)
			}
		}
		i += size
	}
	return n
}

// findNormalized compares in a simpler spelling. A match neither begins nor ends within a word or within what one
// character of the original became.
func findNormalized(simplify func(string) normalized) func(text, old, new string, work *budget) []edit {
	return func(text, old, new string, work *budget) []edit {
		in, wanted := simplify(text), simplify(old).text
		var edits []edit
		for at := 0; len(wanted) > 0; {
			i := bytes.Index(in.text[at:], wanted)
			if i < 0 {
				break
			}
			if !work.spend(len(wanted) + 8*len(new)) {
				return nil
			}
			from, to := at+i, at+i+len(wanted)
			start, end := int(in.starts[from]), int(in.ends[to-1])
			if from > 0 && int(in.starts[from-1]) == start || to < len(in.ends) && int(in.ends[to]) == end ||
				withinWord(text, start) || withinWord(text, end) {
				at = from + 1
				continue
			}
			partial := start > 0 && text[start-1] != '\n'
			indents := newIndentMap(strings.Split(old, "\n"), strings.Split(text[start:end], "\n"), partial)
			edits = append(edits, edit{start, end, indents.apply(new, partial)})
			at = to
		}
		return edits
	}
}

// withinWord tells whether an offset lies between two characters of one word.
func withinWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[at:])
	return isWord(before) && isWord(after)
}

func isWord(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

var unescaper = strings.NewReplacer(`\\`, `\\`, `\n`, "\n", `\t`, "\t", `\r`, "\r")

// findUnescaped reads \n, \t and \r in old as the characters that they stand for. A new text that was escaped in the
// same way, and so has no line end of its own, is read alike.
func findUnescaped(text, old, new string, work *budget) []edit {
	plain := unescaper.Replace(old)
	if plain == old {
		return nil
	}
	if !strings.Contains(old, "\n") && !strings.Contains(new, "\n") {
		new = unescaper.Replace(new)
	}
	return findExact(text, plain, new, work)
}

// findTrimmed leaves out white space around old, if what is left fills its lines in the text.
func findTrimmed(text, old, new string, work *budget) []edit {
	core := strings.TrimSpace(old)
	var edits []edit
	for _, e := range findExact(text, core, strings.TrimSpace(new), work) {
		before := text[strings.LastIndexByte(text[:e.start], '\n')+1 : e.start]
		after, _, _ := strings.Cut(text[e.end:], "\n")
		if !work.spend(len(before) + len(after)) {
			return nil
		}
		if strings.TrimSpace(before) == "" && strings.TrimSpace(after) == "" {
			edits = append(edits, e)
		}
	}
	return edits
}
