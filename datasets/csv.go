package datasets

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"trajgen/pipeline/episode"
)

// maxColumns bounds the header of a table, and with it what each of its rows costs.
const maxColumns = 10_000

// records reads one record of a table after the other. An error that concerns only one record is a *csv.ParseError.
type records interface {
	Read() ([]string, error)
	FieldPos(field int) (line, column int)
}

// csvRows reads a table with a header, its columns being fields. An empty cell is absent; every other one is text, which
// is looked through where a field wants structure and the text is JSON. A row of another length than the header's is
// broken. Columns are separated by commas, or by semicolons where the header has those alone; in .tsv files by tabs (see
// tabs).
func csvRows(text *bufio.Reader, suffix string, yield func(row) bool) error {
	limited := &bounded{Reader: text}
	limited.next()
	var table records
	if suffix == ".tsv" {
		table = &tabs{text: bufio.NewReader(limited)}
	} else {
		commas := csv.NewReader(limited)
		commas.FieldsPerRecord = -1 // a row of another length is told apart by its line
		commas.ReuseRecord = true
		commas.Comma = separator(text)
		table = commas
	}
	header, err := table.Read()
	if err == io.EOF {
		return nil // an empty file has no rows
	}
	if err != nil {
		return unclosed(err)
	}
	line, _ := table.FieldPos(0)
	names, err := columnNames(header)
	if err != nil {
		return fmt.Errorf("line %d: %w", line, err)
	}
	for {
		limited.next()
		cells, err := table.Read()
		slip, oneRow := errors.AsType[*csv.ParseError](err)
		switch {
		case err == io.EOF:
			return nil
		case err != nil && !oneRow:
			return fmt.Errorf("after line %d: %w", line, unclosed(err))
		}
		var r row
		if oneRow {
			r = row{line: slip.StartLine, broken: fmt.Sprintf("line %d, byte %d: %v", slip.Line, slip.Column, slip.Err)}
		} else {
			r.line, _ = table.FieldPos(0)
			r.text, r.broken = cellObject(names, cells)
		}
		if line = r.line; !yield(r) {
			return nil
		}
	}
}

func unclosed(err error) error {
	if errors.Is(err, errRowTooLong) {
		return fmt.Errorf("%w; does a quotation mark not end?", err)
	}
	return err
}

// separator looks at the header.
func separator(text *bufio.Reader) rune {
	head, _ := text.Peek(4096) // an error shows again when the text is read
	header, _, _ := bytes.Cut(head, []byte("\n"))
	if !bytes.ContainsRune(header, ',') && bytes.ContainsRune(header, ';') {
		return ';'
	}
	return ','
}

// columnNames are those of a header. Columns without a name, as some writers leave the one of row numbers, are column_1 and so on.
func columnNames(header []string) ([]string, error) {
	if len(header) > maxColumns {
		return nil, fmt.Errorf("the header has %d columns; at most %d", len(header), maxColumns)
	}
	names := make([]string, len(header))
	seen := map[string]bool{}
	for i, cell := range header {
		if names[i] = strings.TrimSpace(cell); names[i] == "" {
			names[i] = fmt.Sprintf("column_%d", i+1)
		}
		if !utf8.ValidString(cell) {
			return nil, fmt.Errorf("the name of column %d is not UTF-8; convert the file to UTF-8", i+1)
		}
		if seen[names[i]] {
			return nil, fmt.Errorf("two columns are named %q", names[i])
		}
		seen[names[i]] = true
	}
	return names, nil
}

func cellObject(names, cells []string) (object json.RawMessage, broken string) {
	if len(cells) != len(names) {
		return nil, fmt.Sprintf("the row has %d cells, the header %d", len(cells), len(names))
	}
	var list []member
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		value, err := utf8Text(cell)
		if err != nil {
			return nil, fmt.Sprintf("column %s: %v", names[i], err)
		}
		list = append(list, member{Name: names[i], Value: value})
	}
	return episode.Object(list), ""
}

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
	for more := true; more; {
		var cell string
		if cell, line, more, err = t.cell(line); err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	return cells, nil
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
			return "", "", false, &csv.ParseError{
				StartLine: t.begun, Line: t.lines, Column: len(quoted) - len(after),
				Err: errors.New("a quotation mark begins a cell and another one stands within it; write those of the text twice"),
			}
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
