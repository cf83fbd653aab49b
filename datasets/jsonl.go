package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

func looksLikeJSONL(head []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) }

// jsonRows reads one JSON object per line; it skips blank lines, but line numbers count them. A file that is named
// .json may also be one array of objects.
func jsonRows(text *bufio.Reader, suffix string, yield func(row) bool) error {
	head, _ := text.Peek(4096) // an error shows again when the text is read
	if suffix == ".json" && bytes.HasPrefix(bytes.TrimSpace(head), []byte("[")) {
		return arrayRows(text, yield)
	}
	for number := 1; ; number++ {
		line, tooLong, err := readLine(text)
		if err != nil && err != io.EOF {
			return fmt.Errorf("after line %d: %w", number-1, err)
		}
		r := row{line: number, text: bytes.TrimSpace(line)}
		if tooLong {
			r.broken = fmt.Sprintf("the row is longer than %d MiB", maxRow>>20)
		}
		if (len(r.text) > 0 || tooLong) && !yield(r) || err == io.EOF {
			return nil
		}
	}
}

// readLine reads the next line; one that is too long to its end, without keeping it. The last line comes with io.EOF.
func readLine(text *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := text.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > maxRow+1; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return line, tooLong, err
		}
	}
}

// arrayRows streams the items of one JSON array. A slip in the JSON ends the stream: it is unknown where the next item
// begins.
func arrayRows(text *bufio.Reader, yield func(row) bool) error {
	limited := &bounded{Reader: text}
	limited.next()
	decoder := json.NewDecoder(limited)
	number := 0
	fail := func(err error) error {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			err = fmt.Errorf("invalid JSON at byte %d: %w", max(syntax.Offset, decoder.InputOffset()), err)
		} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the array has no end: the file is cut off")
		}
		return fmt.Errorf("after item %d: %w", number, err)
	}
	if _, err := decoder.Token(); err != nil {
		return fail(err)
	}
	for decoder.More() {
		var item json.RawMessage
		if err := decoder.Decode(&item); err != nil {
			return fail(err)
		}
		limited.next()
		number++
		if !yield(row{line: number, unit: "item", text: item}) {
			return nil
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fail(err)
	}
	switch _, err := decoder.Token(); err {
	case io.EOF:
		return nil
	case nil:
		return fail(errors.New("something follows the array"))
	default:
		return fail(err)
	}
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

// invalidUTF8 is where text is not UTF-8, -1 when all of it is.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
}
