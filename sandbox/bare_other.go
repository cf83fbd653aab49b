//go:build !linux

package sandbox

import "errors"

// OpenBare needs Linux.
func OpenBare(BareOptions) (Backend, error) {
	return nil, errors.New("a bare sandbox needs Linux")
}
