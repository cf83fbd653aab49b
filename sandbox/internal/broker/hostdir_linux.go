package broker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"trajgen/sandbox/internal/guest"
)

// hostDir is the lowest layer of writable toolchains in the broker's root, in parts as guest.HostRoot says.
const hostDir = "/host"

// makeHostDir fills it: for each of the host's directories, with those below it, without files. They belong to a sandbox's root,
// which may write to them then.
func makeHostDir(shared []string, ids int64) error {
	owner := 0
	if ids == IDsShared {
		owner = 1 // and not this user, who may read files of its own
	}
	root := hostDir + "/" + guest.HostRoot
	if err := errors.Join(os.Mkdir(hostDir, 0o755), os.Mkdir(root, 0o755), os.Lchown(root, owner, owner)); err != nil {
		return err
	}
	for i, dir := range shared {
		if err := copyDirs(dir, hostDir+"/"+strconv.Itoa(i), owner); err != nil {
			return fmt.Errorf("prepare a writable %s: %w", dir, err)
		}
	}
	return nil
}

// searchable are the bits of a directory that every user may list and search.
const searchable fs.FileMode = 0o005

// copyDirs makes the directories of one tree in another: those of one file system that every user may search. In others, nothing
// can be written.
func copyDirs(from, to string, owner int) error {
	var device uint64
	return filepath.WalkDir(from, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // it was removed meanwhile, or is not for this user
		}
		if err != nil || !entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return nil // likewise
		}
		st := info.Sys().(*syscall.Stat_t)
		if name == from {
			device = st.Dev
		}
		if info.Mode()&searchable != searchable || st.Dev != device {
			return fs.SkipDir
		}
		to := to + name[len(from):]
		return errors.Join(os.Mkdir(to, info.Mode().Perm()), os.Lchown(to, owner, owner))
	})
}
