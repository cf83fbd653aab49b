package disk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Exchange gives two files or directories each other's name at once. It wraps errors.ErrUnsupported where the file system
// cannot do that, and fs.ErrNotExist when one of them is not there.
func Exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: exchange %s and %s: %v", errors.ErrUnsupported, a, b, err)
	}
	if err != nil {
		return fmt.Errorf("exchange %s and %s: %w", a, b, err)
	}
	return nil
}
