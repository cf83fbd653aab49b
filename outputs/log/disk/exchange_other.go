//go:build !linux

package disk

import (
	"errors"
	"fmt"
)

// Exchange is of Linux alone.
func Exchange(a, b string) error {
	return fmt.Errorf("%w: exchange %s and %s", errors.ErrUnsupported, a, b)
}
