package datasets

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// tabs reads records of cells with tabs between them, as a csv.Reader does those with commas. Some writers of such files
// quote a cell that holds a tab or a line break, and others quote nothing: a cell is quoted where a quotation mark begins
// it and another ends it. Any other quotation mark is only itself.
type tabs struct {
	text  *bufio.Reader
	lines int // that were read
	begun int // the line of the last record
}

// FieldPos is where the last record begins; its cells are not told apart.
func (t *tabs) FieldPos(int) (line, column int) { return t.begun, 1 }

func (t *tabs) Read() ([]string, error) {
	line, err := t.line()
	for err == nil && line == "" {
		line, err = t.line()
	}
	if err != nil {
		return nil, err
	}
	t.begun = t.lines
	var cells []string
	for {
		cell, rest, more, err := t.cell(line)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
		if !more {
			return cells, nil
		}
		line = rest
	}
}

// line reads the next one, without its end.
func (t *tabs) line() (string, error) {
	line, err := t.text.ReadString('\n')
	if err != nil && (err != io.EOF || line == "") {
		return "", err
	}
	t.lines++
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}

// cell takes the first cell of a line, and says whether a tab and another follow it.
func (t *tabs) cell(line string) (cell, rest string, more bool, err error) {
	quoted, ok := strings.CutPrefix(line, `"`)
	if !ok {
		cell, rest, more = strings.Cut(line, "\t")
		return cell, rest, more, nil
	}
	var text strings.Builder
	for first := true; ; first = false {
		part, after, closed := untilQuote(quoted)
		text.WriteString(part)
		switch rest, more = strings.CutPrefix(after, "\t"); {
		case closed && (more || after == ""):
			return text.String(), rest, more, nil
		case closed && first:
			cell, rest, more = strings.Cut(line, "\t") // it begins with a word in quotation marks
			return cell, rest, more, nil
		case closed:
			return "", "", false, t.slip(len(quoted)-len(after), "a quotation mark begins a cell and another one stands within it; write those of the text twice")
		}
		text.WriteByte('\n')
		if quoted, err = t.line(); err == io.EOF {
			// The cell took all remaining lines, which is more than one broken row.
			return "", "", false, errors.New("a quotation mark begins a cell and none ends it; put the cell in quotation marks and write those of the text twice")
		} else if err != nil {
			return "", "", false, err
		}
	}
}

// untilQuote is a text up to a quotation mark, of which two in a row are one of the text, and what follows it.
func untilQuote(text string) (part, after string, closed bool) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, `"`)
		out.WriteString(before)
		if !found {
			return out.String(), "", false
		}
		if text, found = strings.CutPrefix(rest, `"`); !found {
			return out.String(), rest, true
		}
		out.WriteByte('"')
	}
}

func (t *tabs) slip(column int, reason string) error {
	return &csv.ParseError{StartLine: t.begun, Line: t.lines, Column: column, Err: errors.New(reason)}
}
