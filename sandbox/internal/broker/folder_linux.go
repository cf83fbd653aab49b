package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// keepFolder makes a read-only folder of the files in a memory file, for guests to bind.
func keepFolder(digest string, fds []int) error {
	if len(fds) != 1 {
		return errors.New("a folder comes with one memory file")
	}
	content, err := wire.Map(fds[0])
	if err != nil {
		return fmt.Errorf("map the folder: %w", err)
	}
	defer unix.Munmap(content)
	var files []guest.Write
	d := wire.NewDecoder(content)
	wire.List(d.Coder(), &files, (*guest.Write).Fields)
	if d.Err() != nil {
		return d.Err()
	}
	at := guest.FoldersDir + "/" + digest
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("folder", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a folder: %w", err)
	}
	for _, f := range files {
		name := filepath.Join(at, f.Path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Data, fs.FileMode(f.Mode))); err != nil {
			return err
		}
	}
	if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("make a folder read-only: %w", err)
	}
	return nil
}
