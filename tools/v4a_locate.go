package tools

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// hunkEdits turns the hunks of an update into edits of the text.
func hunkEdits(text string, hunks []hunk) ([]edit, error) {
	lines, offsets := linesOf(text)
	search := &lineSearch{lines: lines, work: budget{searchWork}}
	var edits []edit
	from := 0 // hunks come in the order of the file
	for _, h := range hunks {
		at, how, err := search.locate(h, from)
		if err != nil {
			return nil, fmt.Errorf("hunk at line %d of the patch: %w", h.line, err)
		}
		made, err := h.edits(text, lines, offsets, at, how)
		if err != nil {
			return nil, fmt.Errorf("hunk at line %d of the patch: %w", h.line, err)
		}
		edits = append(edits, made...)
		from = at + h.changed() // the next hunk may begin with this one's trailing context
	}
	return edits, nil
}

// lineSearch looks for lines of a patch in a file.
type lineSearch struct {
	lines []string
	forms [4][]string // lines in each of lineForms, made when needed
	work  budget
}

func (s *lineSearch) form(i int) []string {
	if s.forms[i] == nil {
		s.forms[i] = eachLine(s.lines, lineForms[i])
	}
	return s.forms[i]
}

// Ways to compare lines of a patch and a file, strictest first. The first one that finds the lines wins.
var lineForms = [4]func(string) string{
	func(line string) string { return line },
	func(line string) string { return strings.TrimRight(line, " \t\r") },
	strings.TrimSpace,
	func(line string) string { return strings.TrimSpace(string(plainPunctuation(line).text)) },
}

// locate finds the line at which a hunk begins, and the form in which its lines match. Of several candidates, the hints select
// one; if they do not, the hunk is refused.
func (s *lineSearch) locate(h hunk, from int) (at, form int, err error) {
	lines := s.lines
	start, err := s.seekHints(h.hints, from)
	if err != nil {
		return 0, 0, err
	}
	wanted := h.before()
	if len(wanted) == 0 {
		at, err := locateAddition(lines, h, start)
		return at, 0, err
	}
	for form := range lineForms {
		found := windows(s.form(form), eachLine(wanted, lineForms[form]), &s.work)
		if s.work.left < 0 {
			return 0, 0, errTooComplex
		}
		if h.eof {
			found = slices.DeleteFunc(found, func(at int) bool { return at+len(wanted) != len(lines) })
		}
		found = slices.DeleteFunc(found, func(at int) bool { return at < start })
		switch {
		case len(found) == 1, len(found) > 1 && len(h.hints) > 0:
			return found[0], form, nil
		case len(found) > 1:
			for i := range found {
				found[i]++ // lines count from 1
			}
			return 0, 0, fmt.Errorf("its lines match at %d places (lines %s); add context or a @@ hint", len(found), listed(found))
		}
	}
	where := ""
	if start > 0 {
		where = fmt.Sprintf(" after line %d", start)
	}
	err = fmt.Errorf("its lines were not found%s", where)
	if lines, from, to := mostAlike(strings.Join(lines, "\n"), strings.Join(wanted, "\n")); from < to {
		err = fmt.Errorf("%w; the most similar place is:\n%s", err, numberedLines(lines, from, to))
	}
	return 0, 0, err
}

// locateAddition places a hunk that only adds lines: after its last hint, at the end, or in an empty file.
func locateAddition(lines []string, h hunk, start int) (int, error) {
	switch {
	case h.eof || len(lines) == 0:
		return len(lines), nil
	case len(h.hints) > 0:
		return start + 1, nil
	}
	return 0, errors.New("it only adds lines; give context lines or a @@ hint that say where")
}

var errTooComplex = errors.New("the patch is too large for so repetitive a file; split it")

// seekHints follows the hints inwards and returns the line of the last one. A hint must match one line.
func (s *lineSearch) seekHints(hints []string, from int) (int, error) {
	lines := s.lines
	for _, hint := range hints {
		if !s.work.spend(2 * len(lines)) {
			return 0, errTooComplex
		}
		match := func(equal func(line string) bool) []int {
			var found []int
			for i := from; i < len(lines); i++ {
				if equal(lines[i]) {
					found = append(found, i+1)
				}
			}
			return found
		}
		found := match(func(line string) bool { return strings.TrimSpace(line) == hint })
		if len(found) == 0 {
			found = match(func(line string) bool { return strings.Contains(line, hint) })
		}
		switch len(found) {
		case 0:
			return 0, fmt.Errorf("its hint %q is not in the file", "@@ "+hint)
		case 1:
			from = found[0] - 1
		default:
			return 0, fmt.Errorf("its hint %q is on %d lines (%s); give one that is unique", "@@ "+hint, len(found), listed(found))
		}
	}
	return from, nil
}

// changed returns how many of the hunk's expected lines are before the end of its last change.
func (h hunk) changed() int {
	n, last := 0, 0
	for _, line := range h.lines {
		if line.op != '+' {
			n++
		}
		if line.op != ' ' {
			last = n
		}
	}
	return last
}

var errIndentation = errors.New("its lines are indented alike where those of the file are not; copy them exactly")

// edits makes one edit of each run of changed lines; context stays as it is in the file.
func (h hunk) edits(text string, lines []string, offsets []int, at, form int) ([]edit, error) {
	before := h.before()
	found := lines[at : at+len(before)]
	whole := newIndentMap(before, found, false)
	var edits []edit
	for i, n := 0, 0; i < len(h.lines); {
		if h.lines[i].op == ' ' {
			i, n = i+1, n+1
			continue
		}
		first := n
		var added strings.Builder
		for ; i < len(h.lines) && h.lines[i].op != ' '; i++ {
			if h.lines[i].op == '-' {
				n++
			} else {
				added.WriteString(h.lines[i].text + "\n")
			}
		}
		e := edit{offsets[at+first], offsets[at+n], added.String()}
		if form > 1 && e.text != "" {
			// The replaced lines are a better source of indentation than those around.
			indents := newIndentMap(before[first:n], found[first:n], false)
			indents.around(whole)
			var ok bool
			if e.text, ok = indents.apply(e.text, false); !ok {
				return nil, errIndentation
			}
		}
		if e.start == len(text) && text != "" && !strings.HasSuffix(text, "\n") && e.text != "" {
			e.text = "\n" + e.text // the last line had no end
		}
		edits = append(edits, e)
	}
	return edits, nil
}
