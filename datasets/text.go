package datasets

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packings are the compressions of text, with how such files begin, what their names end in, and what unpacks them.
var packings = []struct {
	name, magic, suffix string
	unpack              func(io.Reader) (io.Reader, error)
}{
	{"gzip", "\x1f\x8b", ".gz", func(packed io.Reader) (io.Reader, error) { return gzip.NewReader(packed) }},
	{"zstd", "\x28\xb5\x2f\xfd", ".zst", func(packed io.Reader) (io.Reader, error) {
		// With one goroutine, the caller's, a reader needs no Close. Speed does not matter here.
		return zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	}},
	{"bzip2", "BZh", ".bz2", func(packed io.Reader) (io.Reader, error) { return bzip2.NewReader(packed), nil }},
	{"xz", "\xfd7zXZ\x00", "", nil},
	{"lz4", "\x04\x22\x4d\x18", "", nil},
	{"zip", "PK\x03\x04", "", nil},
	{"7z", "7z\xbc\xaf\x27\x1c", "", nil},
}

// byteOrder is the mark that some editors put in front of UTF-8.
const byteOrder = "\xef\xbb\xbf"

// readText returns the text of a file, without the mark of the byte order, and the name of its packing, if it is packed. It goes
// by the content, not by the file's name.
func readText(file io.Reader) (text *bufio.Reader, packing string, err error) {
	text = bufio.NewReaderSize(file, 128<<10)
	head, err := text.Peek(8)
	if err != nil && err != io.EOF {
		return nil, "", err
	}
	for _, p := range packings {
		if !bytes.HasPrefix(head, []byte(p.magic)) {
			continue
		}
		if p.unpack == nil {
			return nil, "", fmt.Errorf("it is packed with %s, which is not read; unpack it, or pack it with gzip, zstd or bzip2", p.name)
		}
		plain, err := p.unpack(text)
		if err != nil {
			return nil, "", compressionError(p.name, err)
		}
		text, packing = bufio.NewReaderSize(&compressed{name: p.name, Reader: plain}, 64<<10), p.name
		break
	}
	if head, _ := text.Peek(len(byteOrder)); string(head) == byteOrder { // an error shows again when the text is read
		text.Discard(len(byteOrder))
	}
	return text, packing, nil
}

// compressed says in its error which layer is broken, and how. It returns the first error again.
type compressed struct {
	name string
	io.Reader
	err error
}

func (c *compressed) Read(p []byte) (n int, err error) {
	if c.err == nil {
		n, c.err = c.Reader.Read(p)
	}
	if c.err != nil && c.err != io.EOF {
		return n, compressionError(c.name, c.err)
	}
	return n, c.err
}

func compressionError(name string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("the %s data ends early: the file is cut off", name)
	}
	return fmt.Errorf("the %s data is damaged: %w", name, err)
}

// maxRow bounds one row; beyond it a dataset is broken rather than large.
const maxRow = 64 << 20

var errRowTooLong = fmt.Errorf("a row is longer than %d MiB", maxRow>>20)

// bounded ends a stream with a row of more than maxRow bytes, as a reader holds one row in memory.
type bounded struct {
	io.Reader
	left int64
}

// next begins another row.
func (b *bounded) next() { b.left = maxRow }

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errRowTooLong
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// readBounded reads a text that is held in memory.
func readBounded(text io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(text, maxRow+1))
	if err == nil && len(data) > maxRow {
		err = fmt.Errorf("it is larger than %d MiB; write large datasets as JSON Lines", maxRow>>20)
	}
	return data, err
}

// readFile reads a text file that is held in memory.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, _, err := readText(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return readBounded(text)
}
