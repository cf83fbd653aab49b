//go:build linux

package images

import (
	"context"
	"io"
)

// Unpack makes the files of a layer, as any user or as an ordinary one.
func Unpack(stream io.Reader, dir string, squash bool, maxBytes, maxEntries int64) error {
	b := newBudget(maxBytes, maxEntries)
	allowed := &allowance{budget: b}
	_, err := unpack(&reading{ctx: context.Background(), from: stream, took: allowed.read}, dir, squash, allowed)
	return err
}
