// Package coding undoes the Content-Encoding of HTTP bodies.
package coding

import (
	"errors"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// ErrUnknown says that a body has an encoding other than gzip, br and zstd.
var ErrUnknown = errors.New("unknown encoding")

// maxWindow is of zstd: what RFC 9659 allows on the web.
const maxWindow = 8 << 20

// Reader reads a body as it was before its server encoded it. An empty one is empty in each encoding. The caller bounds what it reads,
// and closes the Reader, which does not close the body.
func Reader(encoding string, body io.Reader) (r io.ReadCloser, err error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		r = io.NopCloser(body)
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(body)
	case "br":
		r = io.NopCloser(brotli.NewReader(body))
	case "zstd":
		var decoder *zstd.Decoder
		decoder, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			r = decoder.IOReadCloser()
		}
	default:
		return nil, ErrUnknown
	}
	if err == io.EOF {
		r, err = io.NopCloser(body), nil
	}
	return r, err
}
