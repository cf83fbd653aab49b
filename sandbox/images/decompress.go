package images

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a compressed stream can ask for.
const maxWindow = 128 << 20

// decompress reads a stream that may be compressed with gzip or zstd, and says whether it is.
func decompress(r io.Reader) (stream io.ReadCloser, compressed bool, err error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		stream, err := gzip.NewReader(buffered)
		return stream, true, err
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}), isSkippable(magic):
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, false, err
		}
		return decoder.IOReadCloser(), true, nil
	case bytes.HasPrefix(magic, []byte("BZh")), bytes.HasPrefix(magic, []byte{0xfd, '7', 'z', 'X'}):
		return nil, false, errors.New("it is compressed with bzip2 or xz: compress it with gzip or zstd, or not at all")
	}
	return io.NopCloser(buffered), false, nil
}

// isSkippable says whether a zstd stream begins with a frame to skip, as seekable ones do.
func isSkippable(magic []byte) bool {
	return len(magic) == 4 && magic[0]&0xf0 == 0x50 && magic[1] == 0x2a && magic[2] == 0x4d && magic[3] == 0x18
}

// reading is a reader that ends with its context and counts.
type reading struct {
	ctx    context.Context
	from   io.Reader
	bytes  int64
	max    int64 // 0 is any number
	notify func(bytes int64)
	failed error // what from said, but for io.EOF
}

func (r *reading) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.from.Read(p)
	r.bytes += int64(n)
	if r.max > 0 && r.bytes > r.max {
		return 0, errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	if r.notify != nil && n > 0 {
		r.notify(r.bytes)
	}
	return n, err
}

// errTooLarge means that an image unpacks to more than the store allows.
var errTooLarge = errors.New("it unpacks to more than the image store allows")
