//go:build linux

package images

import "io"

// Unpack makes the files of a layer, as any user or as an ordinary one.
func Unpack(stream io.Reader, dir string, squash bool, maxBytes, maxEntries int64) error {
	b := newBudget(maxBytes, maxEntries)
	allowed := &allowance{budget: b}
	_, err := unpack(spend{stream, allowed}, dir, squash, allowed)
	return err
}
