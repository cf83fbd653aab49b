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

var (
	gzipMagic  = []byte{0x1f, 0x8b}
	zstdMagic  = []byte{0x28, 0xb5, 0x2f, 0xfd}
	bzip2Magic = []byte("BZh")
)

// foreignMagics are compressions that are not supported.
var foreignMagics = map[string][]byte{
	"xz":  {0xfd, '7', 'z', 'X', 'Z', 0},
	"lz4": {0x04, 0x22, 0x4d, 0x18},
	"zip": []byte("PK\x03\x04"),
	"7z":  {'7', 'z', 0xbc, 0xaf, 0x27, 0x1c},
}

// openText opens a file of text, which may be compressed. The text is of the file until close.
func openText(path string) (text *bufio.Reader, closeText func(), err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read dataset: %w", err)
	}
	plain, closePlain, err := decompress(file)
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("read dataset %s: %w", path, err)
	}
	return bufio.NewReaderSize(plain, 64<<10), func() { closePlain(); file.Close() }, nil
}

// decompress goes by the content, not by the file's name.
func decompress(file io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReaderSize(file, 128<<10)
	head, err := buffered.Peek(8)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		reader, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, compressionError("gzip", err)
		}
		return &compressed{"gzip", reader}, func() { reader.Close() }, nil
	case bytes.HasPrefix(head, zstdMagic):
		// One goroutine and the smallest buffers: speed does not matter here.
		reader, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, compressionError("zstd", err)
		}
		return &compressed{"zstd", reader}, reader.Close, nil
	case bytes.HasPrefix(head, bzip2Magic):
		return &compressed{"bzip2", bzip2.NewReader(buffered)}, func() {}, nil
	}
	for _, name := range []string{"7z", "lz4", "xz", "zip"} {
		if bytes.HasPrefix(head, foreignMagics[name]) {
			return nil, nil, foreignPacking(name)
		}
	}
	return buffered, func() {}, nil
}

// foreignPacking is the error of a file that is packed in a way that is not read.
type foreignPacking string

func (f foreignPacking) Error() string {
	return fmt.Sprintf("it is packed with %s, which is not read; unpack it, or pack it with gzip, zstd or bzip2", string(f))
}

// compressed says in its errors which layer is broken, and how.
type compressed struct {
	name string
	io.Reader
}

func (c *compressed) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = compressionError(c.name, err)
	}
	return n, err
}

func compressionError(name string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("the %s data ends early: the file is cut off", name)
	}
	return fmt.Errorf("the %s data is damaged: %w", name, err)
}

// packedSuffixes are the names of a kind of text file, compressed or not.
func packedSuffixes(plain ...string) []string {
	var all []string
	for _, suffix := range plain {
		for _, packing := range []string{"", ".gz", ".zst", ".bz2"} {
			all = append(all, suffix+packing)
		}
	}
	return all
}

// bounded ends a stream with a row of more than maxRow bytes, as a reader holds one row in memory.
type bounded struct {
	io.Reader
	left int64
}

var errRowTooLong = fmt.Errorf("a row is longer than %d MiB", maxRow>>20)

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
