package images

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
)

// makeLayer makes a layer's files in an empty directory.
func makeLayer(ctx context.Context, dir string, squash bool, b *budget, fill Fill) (layer, error) {
	allowed := &allowance{budget: b}
	u, err := newUnpacker(dir, squash, allowed)
	if err != nil {
		return layer{}, err
	}
	defer u.close()
	err = fill(ctx, func(header *tar.Header, content io.Reader) error {
		return u.add(header, func(to *os.File) error {
			if content == nil && header.Size > 0 {
				return errors.New("it has no content")
			}
			if err := allowed.take(header.Size, 0); err != nil {
				return err
			}
			return u.copy(to, &reading{ctx: ctx, from: content, took: func(int) error { return nil }}, header.Size)
		})
	})
	if err != nil {
		return layer{}, err
	}
	made, err := u.finish()
	made.Bytes = allowed.bytes
	return made, err
}
