package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// probe tries what layers need of a file system.
func (s *Store) probe(ctx context.Context) error {
	w, err := s.newWorkplace(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.probeIn(w.path), w.remove())
}

func (s *Store) probeIn(dir string) error {
	const elsewhere = "choose a directory on ext4, xfs, btrfs or another tmpfs with --image-dir"
	if err := unix.Setxattr(dir, "user.overlay.opaque", []byte("y"), 0); err != nil {
		return fmt.Errorf("its file system takes no attributes of users, which layers need (%w): %s", err, elsewhere)
	}
	if err := unix.Mknod(filepath.Join(dir, "whiteout"), unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("its file system takes no white-outs, which layers need (%w): %s", err, elsewhere)
	}
	if !s.squash {
		if err := os.Lchown(filepath.Join(dir, "whiteout"), 1, 1); err != nil {
			return fmt.Errorf("root can give no files to others here (%w): open it as unprivileged", err)
		}
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return fmt.Errorf("the kernel opens no files without following links (%w): Linux 5.8 or later is needed, and a container must allow openat2", err)
	}
	return unix.Close(fd)
}

// syncTree writes what was made to disk for good: all of its file system, as a call for each file would take much longer.
func syncTree(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(fd), unix.Close(fd))
}
