package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

func namedJSON(path string) bool {
	lower := strings.ToLower(path)
	return slices.ContainsFunc(packedSuffixes(".json"), func(suffix string) bool { return strings.HasSuffix(lower, suffix) })
}

// beginsArray tells by the first character that is not white space, within what the reader looks ahead.
func beginsArray(text *bufio.Reader) bool {
	head, _ := text.Peek(4096) // an error shows again when the text is read
	head = bytes.TrimLeft(bytes.TrimPrefix(head, byteOrder), " \t\r\n")
	return bytes.HasPrefix(head, []byte("["))
}

// arrayRows streams the items of one JSON array. A slip in the JSON ends the stream: it is unknown where the next item
// begins.
func arrayRows(path string, text *bufio.Reader, yield func(row) bool) error {
	if head, _ := text.Peek(len(byteOrder)); bytes.Equal(head, byteOrder) {
		text.Discard(len(byteOrder))
	}
	limited := &bounded{Reader: text}
	limited.next()
	decoder := json.NewDecoder(limited)
	number := 0
	fail := func(err error) error {
		return fmt.Errorf("read dataset %s after item %d: %w", path, number, arrayError(err, decoder))
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
		if !yield(row{file: path, line: number, unit: "item", text: item}) {
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

func arrayError(err error, decoder *json.Decoder) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the array has no end: the file is cut off")
	case errors.As(err, &syntax):
		return fmt.Errorf("invalid JSON at byte %d: %w", max(syntax.Offset, decoder.InputOffset()), err)
	}
	return err
}
