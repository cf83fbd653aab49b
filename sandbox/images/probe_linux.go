package images

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// probe makes a layer with all that layers need, to find out whether the file system and the kernel support it.
func (d *disk) probe(ctx context.Context) error {
	w, err := d.newWorkplace(ctx)
	if err != nil {
		return err
	}
	u, err := newUnpacker(w.path, d.squash, &allowance{budget: newBudget(0, 10)})
	if err == nil {
		for _, name := range []string{"dir/.wh..wh..opq", "dir/.wh.whiteout", "link"} {
			header := &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "to", Uid: 1, Gid: 1}
			err = errors.Join(err, u.add(header, nil))
		}
		if err == nil {
			_, err = u.finish()
		}
		u.close()
	}
	if err != nil {
		err = fmt.Errorf("layers cannot be kept here, which need attributes of users, white-outs, owners if root has it, and openat2 of "+
			"Linux 5.8 or later (%w): choose a directory on ext4, xfs, btrfs or another tmpfs with --image-dir", err)
	}
	return errors.Join(err, w.remove())
}

// syncTree syncs the whole file system of dir, because a call for each file would take much longer.
func syncTree(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(file.Fd())), file.Close())
}
