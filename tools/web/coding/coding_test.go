package coding_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"trajgen/tools/web/coding"
)

func TestReader(t *testing.T) {
	const text = "what the page says"
	packed := func(to func(io.Writer) io.WriteCloser) string {
		var b bytes.Buffer
		w := to(&b)
		_, err := io.WriteString(w, text)
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	gzipped := packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	squeezed := packed(func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })
	small := packed(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z })
	for _, tt := range []struct {
		encoding, body, want string
		fails                bool
	}{
		{"", text, text, false}, {"identity", text, text, false}, {" GZIP ", gzipped, text, false}, {"x-gzip", gzipped, text, false},
		{"br", squeezed, text, false}, {"zstd", small, text, false},
		{"gzip", "", "", false}, {"br", "", "", false}, {"zstd", "", "", false},
		{"gzip", text, "", true}, {"gzip", gzipped[:len(gzipped)-4], text, true}, {"deflate", text, "", true}, {"gzip, br", text, "", true},
	} {
		r, err := coding.Reader(tt.encoding, bytes.NewReader([]byte(tt.body)))
		var got []byte
		if err == nil {
			got, err = io.ReadAll(r)
			err = errors.Join(err, r.Close())
		}
		if string(got) != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s of %q: got %q, %v", tt.encoding, tt.body, got, err)
		}
	}
}
