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
	"slices"
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
	targets := map[string]string{}
	d, err := open("xl/_rels/workbook.xml.rels")
	if err != nil {
		return nil, err
	}
	err = walk(d, func(token xml.Token) error {
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "Relationship" {
			target := attribute(e, "Target")
			if !strings.HasPrefix(target, "/") {
				target = "/xl/" + target
			}
			targets[attribute(e, "Id")] = target[1:]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var sheets []sheet
	if d, err = open("xl/workbook.xml"); err != nil {
		return nil, err
	}
	err = walk(d, func(token xml.Token) error {
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "sheet" {
			sheets = append(sheets, sheet{attribute(e, "name"), targets[attribute(e, "id")]})
		}
		return nil
	})
	return sheets, err
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// sharedStrings returns the texts that cells refer to by number.
func sharedStrings(open func(string) (*xml.Decoder, error)) ([]string, error) {
	d, err := open("xl/sharedStrings.xml")
	if err != nil {
		return nil, nil // a workbook of numbers has none
	}
	var all []string
	var current strings.Builder
	inText, kept := false, 0
	err = walk(d, func(token xml.Token) error {
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "t"
		case xml.EndElement:
			if inText = false; token.Name.Local == "si" {
				if kept += current.Len() + 16; kept > maxText {
					return errLarge
				}
				all = append(all, current.String())
				current.Reset()
			}
		case xml.CharData:
			if inText && current.Len() < maxText {
				current.Write(token)
			}
		}
		return nil
	})
	return all, err
}

// maxColumns is the format's own bound.
const maxColumns = 16_384

var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

func addSheet(t *text, d *xml.Decoder, shared []string) error {
	var row []string
	var kind string
	var value strings.Builder
	column, inValue := 0, false
	return walk(d, func(token xml.Token) error {
		switch token := token.(type) {
		case xml.StartElement:
			switch token.Name.Local {
			case "row":
				row, column = row[:0], 0
			case "c":
				kind = attribute(token, "t")
				value.Reset()
				if at := columnOf(attribute(token, "r")); at > 0 {
					column = at
				} else {
					column++
				}
			case "v", "t":
				inValue = true
			}
		case xml.EndElement:
			switch token.Name.Local {
			case "v", "t":
				inValue = false
			case "c":
				cell := value.String()
				if kind == "s" {
					if n, err := strconv.Atoi(cell); err == nil && n >= 0 && n < len(shared) {
						cell = shared[n]
					}
				}
				if column > maxColumns {
					return errLarge
				}
				for len(row) < column {
					row = append(row, "")
				}
				row[column-1] = oneLine.Replace(cell)
			case "row":
				end := slices.IndexFunc(row, func(cell string) bool { return cell != "" })
				if end < 0 {
					return t.add("\n")
				}
				return t.add(strings.TrimRight(strings.Join(row, "\t"), "\t") + "\n")
			}
		case xml.CharData:
			if inValue && value.Len() < 1<<20 {
				value.Write(token)
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
