package tools

import (
	"strings"
	"unicode"
)

// A strategy finds where old stands in a text and says what goes there. The confidence says how little a match leaves to
// chance; it orders the strategies and is no probability.
type strategy struct {
	name       string
	confidence float64
	find       func(text, old, new string, work *budget) places
}

// places are edits in order and apart from one another. overlap says that old also stands where it shares text with one
// of them, as aa does twice in aaa; unclear, that old was found and that new could be read in several ways.
type places struct {
	edits            []edit
	overlap, unclear bool
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
	{escapeStrategy, 0.85, findUnescaped},
	{"trimmed_boundary", 0.85, findTrimmed},
	{"unicode_normalized", 0.85, findNormalized(plainPunctuation)},
}

const (
	exactStrategy  = "exact"
	escapeStrategy = "escape_normalized"
)

// match is what was found, and how.
type match struct {
	places
	strategy   string
	confidence float64
}

// findEdits returns the edits of the first strategy that finds old; none when old is nowhere.
func findEdits(text, old, new string) match {
	work := &budget{searchWork}
	for i, s := range strategies {
		if i > 0 && strings.TrimSpace(old) == "" {
			break // white space that is nearly like other white space is everywhere
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

func findExact(text, old, new string, _ *budget) places {
	var found places
	for at, end := 0, 0; ; {
		n := strings.Index(text[at:], old)
		if n < 0 {
			return found
		}
		start := at + n
		at = start + 1 // for what overlaps it, which is to be known once
		if start < end {
			found.overlap = true
		} else {
			end = start + len(old)
			found.edits = append(found.edits, edit{start, end, new})
		}
		if found.overlap {
			at = end
		}
	}
}

// findLines compares whole lines without the white space at both their ends.
func findLines(text, old, new string, work *budget) places {
	wanted, ended := splitLines(old)
	lines, offsets := linesOf(text)
	var found places
	next := 0
	for _, i := range windows(trimAll(lines), trimAll(wanted), work) {
		if i < next {
			found.overlap = true
			continue
		}
		last := i + len(wanted) - 1
		end, ending := offsets[last]+len(lines[last]), new
		if ended {
			if end == len(text) { // which goes on to end without a newline
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

// findTrimmed leaves out the blank lines around old, which the text has not, and those around new with them.
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

// withoutBlankEdges cuts blank lines off at both ends; the last line keeps its newline.
func withoutBlankEdges(text string) string {
	for {
		line, rest, more := strings.Cut(text, "\n")
		if !more || strings.TrimSpace(line) != "" {
			break
		}
		text = rest
	}
	if cut := strings.TrimRightFunc(text, unicode.IsSpace); cut != "" {
		line, _, ended := strings.Cut(text[len(cut):], "\n")
		if text = cut + line; ended {
			text += "\n"
		}
		return text
	}
	return ""
}
