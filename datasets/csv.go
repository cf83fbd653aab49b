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
		list = append(list, member{names[i], value})
	}
	return joined(list), ""
}
