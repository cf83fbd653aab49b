package carry

import (
	"encoding/base64"
	"errors"
	"os"
	"syscall"
)

// Overwrite returns the arguments of a helper that writes a small file in place, as must be where the file is a mount.
func Overwrite(name string, data []byte) []string {
	return []string{helper, "overwrite", name, base64.StdEncoding.EncodeToString(data)}
}

func overwrite(name, text string) error {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
