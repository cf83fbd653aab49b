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

func linesList(text string, found match) string {
	lines := []string{}
	for _, e := range found.edits[:min(len(found.edits), maxListed)] {
		lines = append(lines, strconv.Itoa(lineOf(text, e.start)))
	}
	if len(found.edits) > maxListed {
		lines = append(lines, "...")
	}
	return strings.Join(lines, ", ")
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
	if len(wanted) == 0 {
		return lines, 0, 0
	}
	if from, to := spacedLike(text, old); from < to {
		return lines, from, min(to, from+maxLike)
	}
	work := &budget{searchWork}
	have, want := trimAll(lines), trimAll(wanted)
	if at, n := likeBlocks(have, want, work); n > 0 {
		return lines, at, at + min(n, maxLike)
	}
	if at := likeLines(have, want, work); at >= 0 {
		return lines, at, at + min(len(want), maxLike)
	}
	anchor := 0
	for i, line := range want {
		if len(line) > len(want[anchor]) {
			anchor = i
		}
	}
	best, score := -1, likeAnchor
	for i, line := range have {
		if !comparable(line, want[anchor]) || !work.spend(len(line)+len(want[anchor])) {
			continue
		}
		if s := similarity(want[anchor], line); s > score {
			best, score = i, s
		}
	}
	if best < 0 {
		return lines, 0, 0
	}
	from = max(best-anchor, 0)
	return lines, from, min(from+min(len(want), maxLike), len(lines))
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

// comparable returns false for texts whose lengths are too different, and for lines that are too long to be hand-written.
func comparable(a, b string) bool {
	return len(a) <= 3*len(b) && len(b) <= 3*len(a) && len(a) <= maxLine && len(b) <= maxLine
}

// likeBlocks finds the block with the first and the last of the wanted lines, and the most similar lines in between.
func likeBlocks(lines, wanted []string, work *budget) (at, n int) {
	if len(wanted) < 3 {
		return 0, 0
	}
	score := likeBlock
	for i := 0; i+len(wanted) <= len(lines); i++ {
		last := i + len(wanted) - 1
		if lines[i] != wanted[0] || lines[last] != wanted[len(wanted)-1] {
			continue
		}
		sum := 0.0
		for j := 1; j < len(wanted)-1; j++ {
			if comparable(lines[i+j], wanted[j]) && work.spend(len(lines[i+j])+len(wanted[j])) {
				sum += similarity(lines[i+j], wanted[j])
			}
		}
		if s := sum / float64(len(wanted)-2); s > score {
			at, n, score = i, len(wanted), s
		}
	}
	return at, n
}

// likeLines finds the window in which most of the wanted lines have a similar line, at least half of them.
func likeLines(lines, wanted []string, work *budget) int {
	best, most := -1, (len(wanted)+1)/2-1
	for i := 0; i+len(wanted) <= len(lines); i++ {
		n := 0
		for j, want := range wanted {
			if n+len(wanted)-j <= most {
				break // a later window cannot have more
			}
			if want == "" || !comparable(lines[i+j], want) || !work.spend(len(want)+len(lines[i+j])) {
				continue
			}
			if similarity(want, lines[i+j]) >= likeLine {
				n++
			}
		}
		if n > most {
			best, most = i, n
		}
	}
	return best
}
