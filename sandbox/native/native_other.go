//go:build !linux

package native

import (
	"context"
	"errors"

	"trajgen/sandbox"
)

func openPlain(sandbox.Options) (sandbox.Backend, error) {
	return nil, errors.New("it needs Linux: choose the local backend for trusted work")
}

func sweep(context.Context, sandbox.Instance) error { return nil }
