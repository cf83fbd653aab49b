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
)

// maxColumns bounds the header of a table, and with it what each of its rows costs.
const maxColumns = 10_000

// csvRows reads a table with a header, its columns being fields. An empty cell is absent; every other one is text, which
// is looked through where a field wants structure and the text is JSON. A row of another length than the header's is
// broken. Columns are separated by commas, or by semicolons where the header has those alone; in .tsv files by tabs (see
// tabs).
func csvRows(path string, yield func(row) bool) error {
	text, closeText, err := openText(path)
	if err != nil {
		return err
	}
	defer closeText()
	if head, _ := text.Peek(len(byteOrder)); bytes.Equal(head, byteOrder) {
		text.Discard(len(byteOrder))
	}
	table := newTable(path, text)
	names, err := table.header()
	if err == io.EOF {
		return nil // an empty file has no rows
	}
	if err != nil {
		return fmt.Errorf("read dataset %s: %w", path, err)
	}
	for {
		r, err := table.row(names)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read dataset %s: %w", path, err)
		}
		r.file = path
		if !yield(r) {
			return nil
		}
	}
}

// table reads records and knows where they begin.
type table struct {
	limited *bounded
	records records
	line    int // of the last record
}

// records reads one record after the other. An error that concerns only one record is a *csv.ParseError.
type records interface {
	Read() ([]string, error)
	FieldPos(field int) (line, column int)
}

func newTable(path string, text *bufio.Reader) *table {
	limited := &bounded{Reader: text}
	if namedTSV(path) {
		return &table{limited: limited, records: &tabs{text: bufio.NewReader(limited)}}
	}
	records := csv.NewReader(limited)
	records.FieldsPerRecord = -1 // a row of another length is told apart by its line
	records.ReuseRecord = true
	records.Comma = separator(text)
	return &table{limited: limited, records: records}
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

func (t *table) read() ([]string, error) {
	t.limited.next()
	cells, err := t.records.Read()
	if errors.Is(err, errRowTooLong) {
		return nil, fmt.Errorf("%w; does a quotation mark not end?", err)
	}
	var slip *csv.ParseError
	if errors.As(err, &slip) {
		t.line = slip.StartLine
	} else if err == nil {
		t.line, _ = t.records.FieldPos(0)
	}
	return cells, err
}

// header names the columns. Those without a name, as some writers leave the one of row numbers, are column_1 and so on.
func (t *table) header() ([]string, error) {
	cells, err := t.read()
	if err != nil {
		return nil, err
	}
	if len(cells) > maxColumns {
		return nil, fmt.Errorf("the header has %d columns; at most %d", len(cells), maxColumns)
	}
	names := make([]string, len(cells))
	seen := map[string]bool{}
	for i, cell := range cells {
		if names[i] = strings.TrimSpace(cell); names[i] == "" {
			names[i] = fmt.Sprintf("column_%d", i+1)
		}
		if !utf8.ValidString(cell) {
			return nil, fmt.Errorf("line %d: the name of column %d is not UTF-8; convert the file to UTF-8", t.line, i+1)
		}
		if seen[names[i]] {
			return nil, fmt.Errorf("line %d: two columns are named %q", t.line, names[i])
		}
		seen[names[i]] = true
	}
	return names, nil
}

// row makes an object of the next record. An error that concerns only one record gives a broken row.
func (t *table) row(names []string) (row, error) {
	cells, err := t.read()
	var slip *csv.ParseError
	switch {
	case errors.As(err, &slip):
		return row{line: slip.StartLine, broken: fmt.Sprintf("line %d, byte %d: %v", slip.Line, slip.Column, slip.Err)}, nil
	case err != nil && err != io.EOF && t.line > 0:
		return row{}, fmt.Errorf("after line %d: %w", t.line, err)
	case err != nil:
		return row{}, err
	}
	r := row{line: t.line}
	if len(cells) != len(names) {
		r.broken = fmt.Sprintf("the row has %d cells, the header %d", len(cells), len(names))
		return r, nil
	}
	r.text, r.broken = cellObject(names, cells)
	return r, nil
}

func cellObject(names, cells []string) (object json.RawMessage, broken string) {
	var list []member
	for i, cell := range cells {
		if cell == "" {
			continue
		}
		value, err := utf8Text(cell)
		if err != nil {
			return nil, fmt.Sprintf("column %s: %v", names[i], err)
		}
		list = append(list, member{names[i], value})
	}
	return joined(list), ""
}
