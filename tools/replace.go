package tools

import (
	"regexp"
	"strings"
)

// A strategy finds where old is in a text and returns the edits. The confidence says how exact a match is; it orders the
// strategies and is not a probability.
type strategy struct {
	name       string
	confidence float64
	find       func(text, old, new string, work *budget) places
}

// places are disjoint edits in order. overlap says that old also occurs where it overlaps one of them, as aa does in aaa;
// unclear, that old was found and new has several readings.
type places struct {
	edits            []edit
	overlap, unclear bool
}

// budget bounds the work of a search. Texts and patterns are untrusted, and comparing every line with every line of a
// repetitive file would take hours. Beyond the budget, a text counts as not found.
type budget struct{ left int }

// searchWork takes about a second.
const searchWork = 50_000_000

func (b *budget) spend(n int) bool {
	b.left -= n
	return b.left >= 0
}

// strategies are tried in this order; the first that finds anything wins. Each allows for one kind of difference between a text
// and a model's copy of it. None guesses: text that is only similar is suggested in the error and never edited.
//
// line_trimmed covers differences in indentation alone.
var strategies = []strategy{
	{exactStrategy, 1, findExact},
	{"line_trimmed", 0.95, findLines},
	{"whitespace_normalized", 0.9, findNormalized(collapseSpace)},
	{escapeStrategy, 0.85, findUnescaped},
	{"trimmed_boundary", 0.85, findTrimmed},
	{"unicode_normalized", 0.85, findNormalized(plainPunctuation)},
}

const (
	exactStrategy  = "exact"
	escapeStrategy = "escape_normalized"
)

// match is the result of a search.
type match struct {
	places
	strategy   string
	confidence float64
}

// findEdits returns the edits of the first strategy that finds old, or none.
func findEdits(text, old, new string) match {
	work := &budget{searchWork}
	for i, s := range strategies {
		if i > 0 && strings.TrimSpace(old) == "" {
			break // for white space, fuzzy strategies would match almost anywhere
		}
		found := s.find(text, old, new, work)
		if found.unclear {
			return match{places: found}
		}
		if len(found.edits) > 0 {
			return match{found, s.name, s.confidence}
		}
	}
	return match{}
}

func findExact(text, old, new string, _ *budget) (found places) {
	for at := 0; ; {
		n := strings.Index(text[at:], old)
		if n < 0 {
			return found
		}
		start := at + n
		at = start + len(old)
		found.edits = append(found.edits, edit{start, at, new})
		found.overlap = found.overlap || strings.Contains(text[start+1:min(at+len(old)-1, len(text))], old)
	}
}

// findLines compares whole lines without white space at both ends.
func findLines(text, old, new string, work *budget) places {
	wanted, ended := splitLines(old)
	lines, offsets := linesOf(text)
	var found places
	next := 0
	for _, i := range windows(eachLine(lines, strings.TrimSpace), eachLine(wanted, strings.TrimSpace), work) {
		if i < next {
			found.overlap = true
			continue
		}
		last := i + len(wanted) - 1
		end, ending := offsets[last]+len(lines[last]), new
		if ended {
			if end == len(text) { // the match ends without a newline, as the file does
				ending = strings.TrimSuffix(new, "\n")
			}
			end = offsets[last+1]
		}
		if !work.spend(8*len(new) + len(wanted)) {
			return places{}
		}
		changed, ok := newIndentMap(wanted, lines[i:last+1], false).apply(ending, false)
		if !ok {
			return places{}
		}
		found.edits = append(found.edits, edit{offsets[i], end, changed})
		next = last + 1
	}
	return found
}

// windows finds where the wanted lines occur in a row, including overlaps.
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

// linesOf splits a text and returns where each line begins; the last offset is the end of the text.
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

// eachLine applies a function to each line.
func eachLine(lines []string, form func(string) string) []string {
	made := make([]string, len(lines))
	for i, line := range lines {
		made[i] = form(line)
	}
	return made
}

// findTrimmed ignores blank lines around old that the text lacks, and those around new with them.
func findTrimmed(text, old, new string, work *budget) places {
	core, new := withoutBlankEdges(old), withoutBlankEdges(new)
	if core == old {
		return places{}
	}
	if strings.HasSuffix(core, "\n") && new != "" && !strings.HasSuffix(new, "\n") {
		new += "\n"
	} else if !strings.HasSuffix(core, "\n") {
		new = strings.TrimSuffix(new, "\n")
	}
	return findLines(text, core, new, work)
}

var (
	blankStart = regexp.MustCompile(`\A[\s\v\x{85}\p{Z}]*\n`)
	blankEnd   = regexp.MustCompile(`\n[\s\v\x{85}\p{Z}]*\z`)
)

// withoutBlankEdges removes blank lines at both ends; the last line keeps its newline.
func withoutBlankEdges(text string) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	return blankEnd.ReplaceAllString(blankStart.ReplaceAllString(text, ""), "\n")
}
