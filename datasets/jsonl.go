package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"
)

// maxRow bounds one row; beyond it a dataset is broken rather than large.
const maxRow = 64 << 20

var jsonlSuffixes = append(packedSuffixes(".jsonl", ".ndjson"), packedSuffixes(".json")...)

func looksLikeJSONL(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, byteOrder), " \t\r\n")
	return len(head) > 0 && head[0] == '{'
}

// jsonlRows reads one JSON object per line; blank lines are no rows, and line numbers count them. A file that is named
// .json may also be one array of objects.
func jsonlRows(path string, yield func(row) bool) error {
	text, closeText, err := openText(path)
	if err != nil {
		return err
	}
	defer closeText()
	if namedJSON(path) && beginsArray(text) {
		return arrayRows(path, text, yield)
	}
	for line, err := range lines(text) {
		if err != nil {
			return fmt.Errorf("read dataset %s after line %d: %w", path, line.number, err)
		}
		if !yield(line.row(path)) {
			return nil
		}
	}
	return nil
}

// textLine is a line that is not blank. Its text is valid until the next one.
type textLine struct {
	number  int
	text    []byte
	tooLong bool
}

// lines splits a stream. A line that is too long is read to its end but not kept. With an error comes the number of
// the last line that was whole.
func lines(reader *bufio.Reader) iter.Seq2[textLine, error] {
	return func(yield func(textLine, error) bool) {
		var buffer []byte
		for number := 1; ; number++ {
			line := textLine{number: number}
			buffer = buffer[:0]
			for {
				part, err := reader.ReadSlice('\n')
				if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
					yield(textLine{number: number - 1}, err)
					return
				}
				line.text = part
				if err == bufio.ErrBufferFull || len(buffer) > 0 {
					if line.tooLong = line.tooLong || len(buffer)+len(part) > maxRow+1; !line.tooLong {
						buffer = append(buffer, part...)
					}
					line.text = buffer
				}
				if err == bufio.ErrBufferFull {
					continue
				}
				if number == 1 {
					line.text = bytes.TrimPrefix(line.text, byteOrder)
				}
				line.text = bytes.TrimSpace(line.text)
				if (len(line.text) > 0 || line.tooLong) && !yield(line, nil) {
					return
				}
				if err == io.EOF {
					return
				}
				break
			}
			if cap(buffer) > 1<<20 {
				buffer = nil // frees the memory of a huge line
			}
		}
	}
}

func (l textLine) row(file string) row {
	if l.tooLong {
		return row{file: file, line: l.number, broken: fmt.Sprintf("the row is longer than %d MiB", maxRow>>20)}
	}
	return row{file: file, line: l.number, text: bytes.Clone(l.text)}
}

// notObject is the reason why text is not a JSON object, "" when it is one.
func notObject(text []byte) string {
	if at := invalidUTF8(text); at >= 0 {
		return fmt.Sprintf("invalid UTF-8 at byte %d of the row", at+1)
	}
	if bytes.HasPrefix(text, []byte("[")) {
		return "the row is a list; want one JSON object per line (a file that is one array is named .json)"
	}
	if !json.Valid(text) {
		err := json.Unmarshal(text, new(any))
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return fmt.Sprintf("invalid JSON at byte %d of the row: %v", syntax.Offset, err)
		}
		return fmt.Sprintf("invalid JSON: %v", err)
	}
	if kind := kindOf(text); kind != "an object" {
		return fmt.Sprintf(`the row is %s; want one JSON object per line, such as {"prompt": "..."}`, kind)
	}
	return ""
}

func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for at := 0; ; {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
}
