package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Destroy kills all processes in a group and below it, and deletes the groups. A group that does not exist is not an error.
func Destroy(path string) error {
	var err error
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		if err = destroy(path); err == nil {
			return nil
		}
		time.Sleep(wait)
	}
	return err
}

func destroy(path string) error {
	var dirs []string
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		procs, _ := os.ReadFile(filepath.Join(dirs[i], "cgroup.procs"))
		for _, word := range strings.Fields(string(procs)) {
			if pid, err := strconv.Atoi(word); err == nil && pid > 1 && pid != os.Getpid() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if rmErr := unix.Rmdir(dirs[i]); rmErr != nil && rmErr != unix.ENOENT {
			err = &fs.PathError{Op: "rmdir", Path: dirs[i], Err: rmErr}
		}
	}
	return err
}
