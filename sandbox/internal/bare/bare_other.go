//go:build !linux

package bare

import (
	"errors"

	"trajgen/sandbox"
)

// Open fails: it needs Linux.
func Open(Options) (sandbox.Backend, error) {
	return nil, errors.New("a bare sandbox needs Linux")
}
