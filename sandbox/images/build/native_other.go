//go:build !linux

package build

import (
	"context"
	"errors"
)

// native builds nothing here.
type native struct{}

func newNative(Options) maker { return native{} }

func (native) build(context.Context, Source) (Image, error) {
	return Image{}, errors.New("images are built on Linux, or by docker and podman where these are the sandbox")
}

func (native) close() error { return nil }
