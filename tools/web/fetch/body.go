package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"

	"trajgen/tools/web/coding"
	"trajgen/tools/web/extract"
	"trajgen/tools/web/source"
)

const (
	headSize = 1 << 20 // what is read before its kind and size are known
	maxRatio = 100     // decoded to wire, after the head
	maxIdle  = 1 << 20 // more on the wire than was decoded from it
)

// take reads the body of an answer and hands it over.
func (f *Fetcher) take(ctx context.Context, resp *http.Response, v *visit) (err error) {
	contentType := resp.Header.Get("Content-Type")
	if v.page.Type, _, err = extract.Kind(contentType, nil, resp.ContentLength); err != nil && v.file == 0 {
		return err
	}
	body, err := unfold(resp)
	if err != nil {
		return err
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, headSize))
	if err != nil {
		return err
	}
	var limit int64
	if v.page.Type, limit, err = extract.Kind(contentType, content, resp.ContentLength); v.file > 0 {
		limit = v.file
	} else if err != nil {
		return err
	}
	if len(content) == headSize {
		if resp.ContentLength > limit {
			return tooLarge(limit)
		}
		if err := f.lanes.large.Acquire(ctx, limit); err != nil {
			return err
		}
		defer f.lanes.large.Release(limit)
		rest, err := io.ReadAll(io.LimitReader(body, limit-headSize+1))
		if err != nil {
			return err
		}
		if content = append(content, rest...); int64(len(content)) > limit {
			return tooLarge(limit)
		}
	}
	digest := sha256.Sum256(content)
	v.page.Bytes, v.page.Digest = len(content), hex.EncodeToString(digest[:])
	v.use(content, resp.Header)
	return nil
}

func tooLarge(limit int64) error {
	return source.Errorf(source.Agent, source.TooLarge, "the page is larger than the limit of %d MB for its kind", limit>>20)
}

// unfolded reads a body as it was before the server encoded it.
type unfolded struct {
	io.ReadCloser
	encoding string
	n        int64
	wire     wire
}

// unfold undoes the encoding of a body, which the transport leaves as it came.
func unfold(resp *http.Response) (*unfolded, error) {
	u := &unfolded{encoding: resp.Header.Get("Content-Encoding")}
	u.wire = wire{from: resp.Body, decoded: &u.n}
	var err error
	if u.ReadCloser, err = coding.Reader(u.encoding, &u.wire); err == coding.ErrUnknown {
		return nil, source.Errorf(source.Agent, source.Malformed, "the answer is encoded as %.20q, which was not asked for", u.encoding)
	}
	return u, u.blame(err)
}

func (u *unfolded) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if u.n += int64(n); u.n > headSize && u.n > maxRatio*u.wire.n {
		return n, source.Errorf(source.Agent, source.TooLarge, "the answer unfolds to more than %d times its size", maxRatio)
	}
	return n, u.blame(err)
}

// blame tells a broken connection, which may work again, from an answer that would be the same again.
func (u *unfolded) blame(err error) error {
	switch {
	case err == nil, err == io.EOF:
		return err
	case u.wire.err != nil:
		return u.wire.err
	}
	return source.Errorf(source.Agent, source.Malformed, "the answer is not what its encoding %s says: %v", u.encoding, err)
}

// wire counts the bytes as they come.
type wire struct {
	from    io.Reader
	n       int64
	decoded *int64
	err     error // other than io.EOF
}

func (w *wire) Read(p []byte) (int, error) {
	if w.n > *w.decoded+maxIdle { // it could go on for ever
		w.err = source.Errorf(source.Agent, source.Malformed, "the answer has megabytes of encoding that hold no content")
		return 0, w.err
	}
	n, err := w.from.Read(p)
	w.n += int64(n)
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}
