package search

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/text/encoding/unicode"
)

var (
	errNotRegular = errors.New("not a regular file")
	errBinary     = errors.New("a binary file")
	errLine       = errors.New("a line is too long")
)

// Sizes of the buffer for a file. A line does not exceed the larger one.
const (
	chunkSize = 256 << 10
	maxChunk  = 64 << 20
)

// openRegular opens a file that may have been replaced since it was listed: a pipe must not block the search.
func openRegular(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errNotRegular
	}
	return file, nil
}

// readSmall reads a file that should be small.
func readSmall(name string, most int64) ([]byte, error) {
	f, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// chunks calls visit with one piece of whole lines after the other, until visit returns false. A file with a NUL in its first
// piece is binary; a later NUL ends the file with the line before. UTF-16 is recognised by its byte order mark, and converted
// to UTF-8. The buffer is reused for the next file.
func chunks(name string, buffer *[]byte, visit func(text []byte) bool) error {
	f, err := openRegular(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if *buffer == nil {
		*buffer = make([]byte, chunkSize)
	}
	b := *buffer
	var from io.Reader = f
	held, ended, err := fill(from, b[:chunkSize])
	if order, ok := markOf(b[:held]); ok && err == nil {
		first := bytes.NewReader(bytes.Clone(b[:held]))
		from = unicode.UTF16(order, unicode.ExpectBOM).NewDecoder().Reader(io.MultiReader(first, f))
		held, ended, err = fill(from, b[:chunkSize])
	}
	if err == nil && bytes.IndexByte(b[:held], 0) >= 0 {
		return errBinary
	}
	start := len(b[:held]) - len(bytes.TrimPrefix(b[:held], []byte("\uFEFF")))
	for err == nil {
		end := held
		if !ended {
			end = bytes.LastIndexByte(b[:held], '\n') + 1
		}
		if start < end && !visit(b[start:end]) || ended {
			return nil
		}
		if end == 0 {
			if 2*len(b) > maxChunk {
				return errLine
			}
			*buffer = append(b, make([]byte, len(b))...)
			b = *buffer
		} else {
			held, start = copy(b, b[end:held]), 0
		}
		n := 0
		n, ended, err = fill(from, b[held:])
		if nul := bytes.IndexByte(b[held:held+n], 0); nul >= 0 {
			held, n, ended = bytes.LastIndexByte(b[:held+nul], '\n')+1, 0, true
		}
		held += n
	}
	return err
}

// fill reads into b until b is full or the file ends.
func fill(from io.Reader, b []byte) (n int, ended bool, err error) {
	n, err = io.ReadFull(from, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return n, true, nil
	}
	return n, false, err
}

// markOf returns the byte order of a text that begins with a mark of UTF-16.
func markOf(text []byte) (order unicode.Endianness, ok bool) {
	switch {
	case bytes.HasPrefix(text, []byte("\xFF\xFE")):
		return unicode.LittleEndian, true
	case bytes.HasPrefix(text, []byte("\xFE\xFF")):
		return unicode.BigEndian, true
	}
	return unicode.LittleEndian, false
}
