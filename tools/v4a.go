package tools

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"trajgen/tools/internal/chars"
)

// operation is one section of a V4A patch.
type operation struct {
	kind    string // update, add, delete, move
	path    string
	to      string // of a move, or of an update that moves the file too
	hunks   []hunk
	content []byte // of add
	line    int    // of the header, from 1
}

// hunk is one change of an update.
type hunk struct {
	hints []string // @@ lines, from the outside in
	lines []hunkLine
	eof   bool // the change is at the end of the file
	line  int
}

type hunkLine struct {
	op   byte // ' ', '-' or '+'
	text string
}

// before returns the lines that the hunk expects to find.
func (h hunk) before() []string {
	lines := []string{}
	for _, line := range h.lines {
		if line.op != '+' {
			lines = append(lines, line.text)
		}
	}
	return lines
}

// parseV4A parses a whole patch. Anything that it does not know is an error: skipping it would lose a change.
func parseV4A(text string) ([]operation, error) {
	p := &v4aParser{}
	for i, line := range strings.Split(unixLines(text), "\n") {
		p.number = i + 1
		if err := p.next(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.number, err)
		}
	}
	if err := p.endOperation(); err != nil {
		return nil, err
	}
	if len(p.operations) == 0 {
		return nil, fmt.Errorf("the patch has no section (*** Update File:, *** Add File:, *** Delete File: or *** Move File:)")
	}
	return p.operations, nil
}

type v4aParser struct {
	number     int
	begun      bool
	ended      bool
	current    *operation
	blanks     int // empty lines that are content only if more content follows
	operations []operation
}

func (p *v4aParser) next(line string) error {
	if rest, ok := strings.CutPrefix(line, "***"); ok {
		return p.header(strings.TrimSpace(rest))
	}
	blank := strings.TrimSpace(line) == ""
	switch {
	case p.ended && !blank:
		return fmt.Errorf("text after *** End Patch: %q", chars.First(line, 80, "..."))
	case p.current == nil && !blank:
		return fmt.Errorf("expected a section such as *** Update File: path, got %q", chars.First(line, 80, "..."))
	case p.current == nil:
		return nil
	case line == "":
		p.blanks++
		return nil
	}
	switch p.current.kind {
	case "add":
		if line[0] != '+' {
			return fmt.Errorf("a line of an added file begins with '+', got %q", chars.First(line, 80, "..."))
		}
		p.current.content = fmt.Appendf(p.current.content, "%s%s\n", strings.Repeat("\n", p.blanks), line[1:])
		p.blanks = 0
		return nil
	case "update":
		return p.updateLine(line)
	}
	if blank {
		return nil
	}
	return fmt.Errorf("a %s section has no further lines, got %q", p.current.kind, chars.First(line, 80, "..."))
}

func (p *v4aParser) header(text string) error {
	keyword, rest, hasPath := strings.Cut(text, ":")
	rest = strings.TrimSpace(rest)
	switch {
	case p.ended:
		return fmt.Errorf("text after *** End Patch: %q", chars.First(text, 80, "..."))
	case text == "Begin Patch":
		if p.begun || p.current != nil {
			return fmt.Errorf("*** Begin Patch comes twice or late")
		}
		p.begun = true
		return nil
	case text == "End Patch":
		p.ended = true
		return p.endOperation()
	case text == "End of File":
		if p.current == nil || len(p.current.hunks) == 0 {
			return fmt.Errorf("*** End of File belongs after the lines of an update")
		}
		p.current.hunks[len(p.current.hunks)-1].eof = true
		p.blanks = 0
		return nil
	case keyword == "Move to" && hasPath:
		if p.current == nil || p.current.kind != "update" || p.current.to != "" || len(p.current.hunks) > 0 {
			return fmt.Errorf("*** Move to: belongs directly after *** Update File:")
		}
		p.current.to = rest
		return checkPatchPath(rest)
	}
	kind, ok := sections[keyword]
	if !ok || !hasPath {
		return fmt.Errorf("unknown section *** %s", chars.First(text, 80, "..."))
	}
	if err := p.endOperation(); err != nil {
		return err
	}
	op := &operation{kind: kind, path: rest, line: p.number}
	if kind == "move" {
		from, to, arrow := strings.Cut(rest, "->")
		if !arrow {
			return fmt.Errorf("*** Move File needs an arrow: old -> new")
		}
		op.path, op.to = strings.TrimSpace(from), strings.TrimSpace(to)
		if err := checkPatchPath(op.to); err != nil {
			return err
		}
	}
	p.current = op
	return checkPatchPath(op.path)
}

var sections = map[string]string{"Update File": "update", "Add File": "add", "Delete File": "delete", "Move File": "move"}

func checkPatchPath(name string) error {
	switch {
	case name == "":
		return errors.New("the path is missing")
	case slices.Contains(strings.Split(name, "/"), ".."):
		return fmt.Errorf("the path %q contains '..'", name)
	}
	return nil
}

// A position as in unified diffs; it is ignored, as the lines determine the place.
var position = regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)?( @@|$)`)

func (p *v4aParser) updateLine(line string) error {
	op := p.current
	rest, isHint := strings.CutPrefix(line, "@@")
	switch {
	case strings.HasPrefix(line, `\ No newline`):
		return nil
	case !isHint && !strings.ContainsRune(" -+", rune(line[0])):
		return fmt.Errorf("a line of an update begins with ' ', '-', '+' or '@@', got %q", chars.First(line, 80, "..."))
	}
	if n := len(op.hunks); n == 0 || isHint && len(op.hunks[n-1].lines) > 0 {
		op.hunks = append(op.hunks, hunk{line: p.number})
	}
	last := &op.hunks[len(op.hunks)-1]
	if isHint {
		p.blanks = 0
		hint := strings.TrimSpace(position.ReplaceAllString(strings.TrimSpace(rest), ""))
		if hint = strings.TrimSpace(strings.TrimSuffix(hint, "@@")); hint != "" {
			last.hints = append(last.hints, hint)
		}
		return nil
	}
	if last.eof {
		return fmt.Errorf("lines after *** End of File need a new @@")
	}
	for ; p.blanks > 0; p.blanks-- { // an empty context line whose leading space was lost
		if len(last.lines) > 0 {
			last.lines = append(last.lines, hunkLine{op: ' '})
		}
	}
	last.lines = append(last.lines, hunkLine{line[0], line[1:]})
	return nil
}

// endOperation ends a section and checks that it is not empty.
func (p *v4aParser) endOperation() error {
	op := p.current
	p.current, p.blanks = nil, 0
	if op == nil {
		return nil
	}
	if op.kind == "update" {
		if len(op.hunks) == 0 && op.to == "" {
			return fmt.Errorf("update of %s (line %d) has no changes", op.path, op.line)
		}
		for _, h := range op.hunks {
			if !slices.ContainsFunc(h.lines, func(line hunkLine) bool { return line.op != ' ' }) {
				return fmt.Errorf("a hunk of %s (line %d) has no '+' or '-' line", op.path, h.line)
			}
		}
	}
	p.operations = append(p.operations, *op)
	return nil
}
