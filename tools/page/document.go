package page

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Document reports whether Read extracts the text of files with this name.
func Document(name string) bool { return documents[extension(name)] != nil }

var documents = map[string]func(file *os.File, size int64) (io.Reader, error){
	"ipynb": notebook,
	"docx":  wordDocument,
	"xlsx":  workbook,
}

// Bounds of a document: a few bytes of a zip file can hold gigabytes.
const (
	maxNotebook = 64 << 20
	maxXML      = 32 << 20
	maxText     = 16 << 20
	maxParts    = 10_000
)

// limited fails rather than cuts, as half a document looks complete.
type limited struct {
	r    io.Reader
	left int64
}

var errLarge = errors.New("it is too large")

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errLarge
	}
	return n, err
}

// text is the extracted text of a document.
type text struct{ bytes.Buffer }

func (t *text) add(piece string) error {
	if t.Len()+len(piece) > maxText {
		return errLarge
	}
	t.WriteString(piece)
	return nil
}

// source is a text that notebooks have as one string or as a list of lines.
type source string

func (s *source) UnmarshalJSON(data []byte) error {
	var lines []string
	if json.Unmarshal(data, &lines) == nil {
		*s = source(strings.Join(lines, ""))
		return nil
	}
	var whole string
	if err := json.Unmarshal(data, &whole); err != nil {
		return err
	}
	*s = source(whole)
	return nil
}

func notebook(file *os.File, _ int64) (io.Reader, error) {
	var book struct {
		Cells []struct {
			Type    string `json:"cell_type"`
			Source  source `json:"source"`
			Outputs []struct {
				Type  string                     `json:"output_type"`
				Text  source                     `json:"text"`
				Data  map[string]json.RawMessage `json:"data"`
				Name  string                     `json:"ename"`
				Value string                     `json:"evalue"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.NewDecoder(&limited{file, maxNotebook}).Decode(&book); err != nil {
		return nil, fmt.Errorf("not a notebook: %w", err)
	}
	var t text
	var err error
	add := func(heading, body string) {
		if err == nil {
			err = t.add(heading + "\n" + strings.TrimRight(body, "\n") + "\n\n")
		}
	}
	for i, cell := range book.Cells {
		add(fmt.Sprintf("[cell %d: %s]", i+1, cell.Type), string(cell.Source))
		for _, output := range cell.Outputs {
			body := string(output.Text)
			var plain source
			if raw, ok := output.Data["text/plain"]; ok && json.Unmarshal(raw, &plain) == nil {
				body += string(plain)
			}
			if output.Name != "" {
				body += output.Name + ": " + output.Value
			}
			if body == "" && len(output.Data) > 0 {
				body = "(not text)"
			}
			add(fmt.Sprintf("[output of cell %d]", i+1), body)
		}
	}
	return &t, err
}

// archive opens the parts of an Office document.
func archive(file *os.File, size int64) (func(name string) (*xml.Decoder, error), error) {
	r, err := zip.NewReader(file, size)
	if err != nil {
		return nil, fmt.Errorf("not an Office document: %w", err)
	}
	if len(r.File) > maxParts {
		return nil, errLarge
	}
	left := &limited{left: maxXML}
	return func(name string) (*xml.Decoder, error) {
		part, err := r.Open(name)
		if err != nil {
			return nil, err
		}
		if info, err := part.Stat(); err != nil || info.Size() > left.left { // the declared size, which need not be true
			return nil, cmp.Or(err, errLarge)
		}
		left.r = part // parts are read one after the other, all together within the bound
		return xml.NewDecoder(left), nil
	}, nil
}

// walk reads a part to its end.
func walk(d *xml.Decoder, visit func(xml.Token) error) error {
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(token)
		}
		if err != nil {
			return err
		}
	}
}

// each decodes the elements of a name.
func each[T any](d *xml.Decoder, name string, visit func(T) error) error {
	return walk(d, func(token xml.Token) error {
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != name {
			return nil
		}
		var found T
		if err := d.DecodeElement(&found, &start); err != nil {
			return err
		}
		return visit(found)
	})
}

// wordDocument extracts a line for each paragraph; tabs separate the cells of a row.
func wordDocument(file *os.File, size int64) (io.Reader, error) {
	open, err := archive(file, size)
	if err != nil {
		return nil, err
	}
	d, err := open("word/document.xml")
	if err != nil {
		return nil, err
	}
	var t text
	inText, rows := false, 0
	err = walk(d, func(token xml.Token) error {
		switch token := token.(type) {
		case xml.StartElement:
			switch token.Name.Local {
			case "t":
				inText = true
			case "tab":
				return t.add("\t")
			case "br", "cr":
				return t.add("\n")
			case "tr":
				rows++
			}
		case xml.EndElement:
			switch token.Name.Local {
			case "t":
				inText = false
			case "p":
				if rows == 0 {
					return t.add("\n")
				}
				return t.add(" ")
			case "tc":
				return t.add("\t")
			case "tr":
				rows--
				return t.add("\n")
			}
		case xml.CharData:
			if inText {
				return t.add(string(token))
			}
		}
		return nil
	})
	return &t, err
}

// workbook extracts a heading for each sheet, and its rows with tabs between the cells.
func workbook(file *os.File, size int64) (io.Reader, error) {
	open, err := archive(file, size)
	if err != nil {
		return nil, err
	}
	names, err := sheetNames(open)
	if err != nil {
		return nil, err
	}
	shared, err := sharedStrings(open)
	if err != nil {
		return nil, err
	}
	var t text
	for _, sheet := range names {
		if err := t.add("[sheet " + sheet.name + "]\n"); err != nil {
			return nil, err
		}
		d, err := open(sheet.part)
		if err != nil {
			return nil, err
		}
		if err := addSheet(&t, d, shared); err != nil {
			return nil, err
		}
	}
	return &t, nil
}

type sheet struct{ name, part string }

func sheetNames(open func(string) (*xml.Decoder, error)) ([]sheet, error) {
	d, err := open("xl/_rels/workbook.xml.rels")
	if err != nil {
		return nil, err
	}
	type link struct {
		ID     string `xml:"Id,attr"`
		Target string `xml:"Target,attr"`
	}
	targets := map[string]string{}
	err = each(d, "Relationship", func(l link) error {
		if !strings.HasPrefix(l.Target, "/") {
			l.Target = "/xl/" + l.Target
		}
		targets[l.ID] = l.Target[1:]
		return nil
	})
	if err != nil {
		return nil, err
	}
	if d, err = open("xl/workbook.xml"); err != nil {
		return nil, err
	}
	type entry struct {
		Name string `xml:"name,attr"`
		ID   string `xml:"id,attr"`
	}
	var sheets []sheet
	err = each(d, "sheet", func(e entry) error {
		sheets = append(sheets, sheet{e.Name, targets[e.ID]})
		return nil
	})
	return sheets, err
}

// richText is a text in one piece, or in several with formats of their own.
type richText struct {
	Whole  []string `xml:"t"`
	Pieces []string `xml:"r>t"`
}

func (r richText) String() string { return strings.Join(append(r.Whole, r.Pieces...), "") }

// sharedStrings returns the texts that cells refer to by number.
func sharedStrings(open func(string) (*xml.Decoder, error)) (all []string, err error) {
	d, err := open("xl/sharedStrings.xml")
	if err != nil {
		return nil, nil // a workbook of numbers has none
	}
	kept := 0
	err = each(d, "si", func(r richText) error {
		all = append(all, r.String())
		if kept += len(all[len(all)-1]) + 16; kept > maxText {
			return errLarge
		}
		return nil
	})
	return all, err
}

// maxColumns is the format's own bound.
const maxColumns = 16_384

var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

// cell is a cell of a sheet.
type cell struct {
	At     string   `xml:"r,attr"`
	Kind   string   `xml:"t,attr"`
	Value  string   `xml:"v"`
	Inline richText `xml:"is"`
}

func (c cell) text(shared []string) string {
	n, err := strconv.Atoi(c.Value)
	if c.Kind == "s" && err == nil && n >= 0 && n < len(shared) {
		return shared[n]
	}
	return c.Value + c.Inline.String()
}

func addSheet(t *text, d *xml.Decoder, shared []string) error {
	var row []string
	return walk(d, func(token xml.Token) error {
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local != "c" {
				return nil
			}
			var c cell
			if err := d.DecodeElement(&c, &token); err != nil {
				return err
			}
			column := cmp.Or(columnOf(c.At), len(row)+1)
			if column > maxColumns {
				return errLarge
			}
			row = append(row, make([]string, max(0, column-len(row)))...)
			row[column-1] = oneLine.Replace(c.text(shared))
		case xml.EndElement:
			if token.Name.Local == "row" {
				line := strings.TrimRight(strings.Join(row, "\t"), "\t")
				row = row[:0]
				return t.add(line + "\n")
			}
		}
		return nil
	})
}

// columnOf returns 1 for A7 and 28 for AB7.
func columnOf(reference string) int {
	n := 0
	for _, c := range reference {
		if c < 'A' || c > 'Z' || n > maxColumns {
			break
		}
		n = n*26 + int(c-'A') + 1
	}
	return n
}
