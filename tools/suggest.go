package tools

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"trajgen/tools/internal/chars"
	"trajgen/tools/page"
)

const maxListed = 10

func ambiguous(text string, found match, shown string) error {
	if len(found.edits) == 1 {
		return refuse("ambiguous", "old_string overlaps itself in %s (strategy %s): it stands at line %d and again before its end; "+
			"add lines around it to make it unique, or set replace_all", shown, found.strategy, lineOf(text, found.edits[0].start))
	}
	return refuse("ambiguous", "found %d matches of old_string in %s (strategy %s), at lines %s; add lines around it to "+
		"make it unique, or set replace_all", len(found.edits), shown, found.strategy, linesList(text, found))
}

// linesList lists the lines at which the matches begin.
func linesList(text string, found match) string {
	var lines []int
	for _, e := range found.edits {
		lines = append(lines, lineOf(text, e.start))
	}
	return listed(lines)
}

func listed(lines []int) string {
	var texts []string
	for _, n := range lines[:min(len(lines), maxListed)] {
		texts = append(texts, strconv.Itoa(n))
	}
	if len(lines) > maxListed {
		texts = append(texts, "...")
	}
	return strings.Join(texts, ", ")
}

func unexpected(text string, found match, args patchArgs) error {
	overlap := ""
	if found.overlap {
		overlap = ", and overlaps itself"
	}
	return refuse("unexpected_count", "old_string occurs %d times in %s (strategy %s)%s, not %d times as expected_replacements "+
		"says; it is at lines %s; nothing was changed", len(found.edits), args.Path, found.strategy, overlap, *args.Expected,
		linesList(text, found))
}

// notFoundInFile returns the failure with the lines of the file that are most like the text, and the differences.
func notFoundInFile(text, old, shown string) error {
	if plain := strings.NewReplacer(`\"`, `"`, `\'`, `'`).Replace(old); plain != old && strings.Contains(text, plain) {
		return refuse("escape_drift", "old_string has escaped quotes (\\\" or \\') where %s has plain ones; give old_string "+
			"and new_string exactly as the file has them", shown)
	}
	failure := refuse("no_match", "could not find old_string in %s; read the file and copy the text exactly", shown)
	lines, from, to := mostAlike(text, old)
	if from < to {
		failure.Message += "; the most similar place is in did_you_mean, with a diff from old_string to it; nothing was changed"
		failure.Extra["did_you_mean"] = map[string]any{
			"lines": numberedLines(lines, from, to),
			"diff": cutDiff(udiff.Unified("old_string", shown, ended(old),
				ended(strings.Join(lines[from:to], "\n")))),
		}
	}
	return failure
}

func ended(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func numberedLines(lines []string, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%d|%s\n", i+1, chars.First(lines[i], maxLine, page.CutMark))
	}
	return b.String()
}

// How similar a place must be to be suggested.
const (
	likeBlock  = 0.5 // of a block whose first and last line are found, as an average of the lines
	likeLine   = 0.8 // of a line; at least half of a text's lines need it
	likeAnchor = 0.5 // of the longest line, when nothing better is found
	maxLike    = 20  // lines that are shown and compared
)

// mostAlike finds the lines of a text that old was probably meant to be: those that differ only in white space, else a block
// that begins and ends like old, else one with half of its lines nearly those of old, else one with a line like the longest of
// old.
func mostAlike(text, old string) (lines []string, from, to int) {
	lines, _ = splitLines(text)
	wanted, _ := splitLines(old)
	n := len(wanted)
	if n == 0 {
		return lines, 0, 0
	}
	if from, to := spacedLike(text, old); from < to {
		return lines, from, min(to, from+maxLike)
	}
	like := likeness{have: eachLine(lines, strings.TrimSpace), want: eachLine(wanted, strings.TrimSpace), work: budget{searchWork}}
	at := -1
	if n >= 3 {
		at = like.best(n, likeBlock, like.block)
	}
	if at < 0 {
		at = like.best(n, float64((n+1)/2-1), like.lines)
	}
	if at < 0 {
		longest := 0
		for i, line := range like.want {
			if len(line) > len(like.want[longest]) {
				longest = i
			}
		}
		if at = like.best(1, likeAnchor, func(at int) float64 { return like.line(at, longest) }); at < 0 {
			return lines, 0, 0
		}
		at = max(at-longest, 0)
	}
	return lines, at, min(at+min(n, maxLike), len(lines))
}

// likeness compares wanted lines with those of a text.
type likeness struct {
	have, want []string
	work       budget
}

// best returns where n lines have the highest score, the first of several. It returns -1 when no score is above the floor.
func (l *likeness) best(n int, floor float64, score func(at int) float64) int {
	best := -1
	for at := 0; at+n <= len(l.have); at++ {
		if s := score(at); s > floor {
			best, floor = at, s
		}
	}
	return best
}

// line compares a line with a wanted one. Lines whose lengths are too different, or that are too long to be hand-written, are not
// alike.
func (l *likeness) line(at, wanted int) float64 {
	a, b := l.have[at], l.want[wanted]
	if len(a) > 3*len(b) || len(b) > 3*len(a) || len(a) > maxLine || len(b) > maxLine || !l.work.spend(len(a)+len(b)) {
		return 0
	}
	return similarity(a, b)
}

// block is how alike the lines are between the first and the last, which must be found.
func (l *likeness) block(at int) float64 {
	last := len(l.want) - 1
	if l.have[at] != l.want[0] || l.have[at+last] != l.want[last] {
		return 0
	}
	sum := 0.0
	for i := 1; i < last; i++ {
		sum += l.line(at+i, i)
	}
	return sum / float64(last-1)
}

// lines is how many lines are nearly those that are wanted.
func (l *likeness) lines(at int) float64 {
	n := 0.0
	for i, want := range l.want {
		if want != "" && l.line(at+i, i) >= likeLine {
			n++
		}
	}
	return n
}

// spacedLike finds the lines that equal old but for white space.
func spacedLike(text, old string) (from, to int) {
	in, wanted := withoutSpace(text), withoutSpace(old).text
	i := bytes.Index(in.text, wanted)
	if i < 0 || len(wanted) == 0 {
		return 0, 0
	}
	return lineOf(text, int(in.starts[i])) - 1, lineOf(text, int(in.starts[i+len(wanted)-1]))
}

func withoutSpace(text string) normalized {
	var n normalized
	for i := range len(text) {
		if strings.IndexByte(" \t\r\n", text[i]) < 0 {
			n.add(text[i:i+1], i, i+1)
		}
	}
	return n
}
