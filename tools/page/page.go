// Package page makes the pages of read_file. It runs in the runner for small files, and as a helper inside the sandbox for the
// rest: large files, special files, and documents whose text has to be extracted. It is part of the small program in every
// sandbox, so it imports little.
package page

import (
	"bufio"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"trajgen/tools/internal/chars"
)

// Bounds of a page.
const (
	MaxLine    = 2000    // characters of a line
	MaxContent = 100_000 // characters of a page
	binaryHead = 8192    // bytes that are searched for a NUL
)

// ErrBinary means that there is a NUL near the beginning, and ErrWide that the text is in UTF-16, which is full of them.
var (
	ErrBinary = errors.New("a binary file")
	ErrWide   = errors.New("a text in UTF-16")
)

// Page is a page of a text, with facts about the whole text.
type Page struct {
	Content    string `json:"content"` // lines as NUMBER|TEXT
	TotalLines int    `json:"total_lines"`
	Lines      int    `json:"lines"` // on the page
	Chars      int    `json:"chars"` // of the page, also when it is too large and Content is empty
	Fit        int    `json:"fit"`   // lines that fit when the page is too large
	Sum        uint32 `json:"sum"`   // of all bytes
	Size       int64  `json:"size"`
	Garbled    bool   `json:"garbled"` // the page has bytes that are not UTF-8 and are replaced
}

// TooLarge reports whether the page exceeds MaxContent.
func (p Page) TooLarge() bool { return p.Chars > MaxContent }

var sums = crc32.MakeTable(crc32.Castagnoli)

// Sum returns Page.Sum for data.
func Sum(data []byte) uint32 { return crc32.Checksum(data, sums) }

// Make reads a text to its end, in bounded memory, and makes the page of at most limit lines from line offset on, counted from
// 1. Line ends and a byte order mark are not shown, and bytes that are not UTF-8 are replaced.
func Make(r io.Reader, offset, limit int) (Page, error) {
	m := maker{from: offset, to: offset + limit, number: 1}
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(binaryHead)
	if err != nil && !errors.Is(err, io.EOF) {
		return Page{}, err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
			return Page{}, ErrWide
		}
		return Page{}, ErrBinary
	}
	for {
		piece, err := in.Peek(1) // fills the buffer when it is empty
		if len(piece) == 0 {
			if errors.Is(err, io.EOF) {
				return m.end(), nil
			}
			return Page{}, err
		}
		piece, _ = in.Peek(in.Buffered())
		m.add(piece)
		if _, err := in.Discard(len(piece)); err != nil {
			return Page{}, err
		}
	}
}

const byteOrderMark = "\uFEFF"

type maker struct {
	page     Page
	from, to int // line numbers
	number   int // of the current line
	begun    bool
	line     []byte // the beginning of the current line, if it is on the page
	long     bool   // the rest was left out
	content  strings.Builder
}

func (m *maker) add(piece []byte) {
	m.page.Sum = crc32.Update(m.page.Sum, sums, piece)
	m.page.Size += int64(len(piece))
	for len(piece) > 0 {
		if m.number >= m.to {
			// Only the number of lines is still needed.
			m.number += bytes.Count(piece, []byte("\n"))
			m.begun = piece[len(piece)-1] != '\n'
			return
		}
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			m.keep(piece)
			return
		}
		m.keep(piece[:end])
		m.finish()
		piece = piece[end+1:]
	}
}

// maxKept is more than MaxLine characters can take, in bytes.
const maxKept = utf8.UTFMax*(MaxLine+1) + len(byteOrderMark)

func (m *maker) keep(piece []byte) {
	m.begun = true
	if m.number < m.from {
		return
	}
	room := maxKept - len(m.line)
	if len(piece) > room {
		piece, m.long = piece[:room], true
	}
	m.line = append(m.line, piece...)
}

// finish ends the current line.
func (m *maker) finish() {
	if m.number >= m.from {
		m.show()
	}
	m.line, m.long, m.begun = m.line[:0], false, false
	m.number++
}

func (m *maker) show() {
	line := m.line
	if m.number == 1 {
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	if !m.long {
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	if !m.long && !utf8.Valid(line) { // the last character of a cut line may be incomplete
		m.page.Garbled = true
	}
	number := strconv.Itoa(m.number)
	text := cut(strings.ToValidUTF8(string(line), "\uFFFD"), m.long)
	if m.page.Chars += len(number) + 1 + utf8.RuneCountInString(text); m.page.Lines > 0 {
		m.page.Chars++
	}
	m.page.Lines++
	if m.page.TooLarge() {
		m.content.Reset()
		return
	}
	m.page.Fit = m.page.Lines
	if m.page.Lines > 1 {
		m.content.WriteByte('\n')
	}
	m.content.WriteString(number + "|" + text)
}

// CutMark follows a line that is shown in part.
const CutMark = "... [truncated]"

// cut shortens a line to MaxLine characters. With more set, the line has further text.
func cut(line string, more bool) string {
	if short := chars.First(line, MaxLine, CutMark); short != line || !more {
		return short
	}
	return line + CutMark
}

func (m *maker) end() Page {
	if m.begun && m.number < m.to {
		m.finish() // a last line without an end counts
	} else if m.begun {
		m.number++
	}
	m.page.TotalLines = m.number - 1
	m.page.Content = m.content.String()
	return m.page
}
