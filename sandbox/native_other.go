//go:build !linux

package sandbox

import (
	"context"
	"errors"
)

func openNative(Options) (Backend, error) {
	return nil, errors.New("it needs Linux: choose the local backend for trusted work")
}

func sweepNative(context.Context, Instance) error { return nil }
