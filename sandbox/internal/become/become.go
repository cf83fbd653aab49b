//go:build unix

// Package become starts commands of an image as the user that they are meant for.
package become

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"trajgen/sandbox"
)

// Helper is the name of the sandbox helper. Its arguments are UID GID GROUP,... DIR COMMAND ARG...
const Helper = "become"

func init() { sandbox.RegisterHelper(Helper, become) }

func become(args []string, _ io.Reader, _, stderr io.Writer) int {
	if err := start(args); err != nil {
		fmt.Fprintln(stderr, err)
	}
	return 127
}

// start replaces this process.
func start(args []string) error {
	if len(args) < 5 {
		return fmt.Errorf("want UID GID GROUPS DIR COMMAND, have %q", args)
	}
	uid, err1 := strconv.Atoi(args[0])
	gid, err2 := strconv.Atoi(args[1])
	if err1 != nil || err2 != nil {
		return fmt.Errorf("%q and %q are not numbers", args[0], args[1])
	}
	var groups []int
	for text := range strings.SplitSeq(args[2], ",") {
		if group, err := strconv.Atoi(text); err == nil {
			groups = append(groups, group)
		}
	}
	syscall.Umask(0o022)
	dir, args := args[3], args[4:]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if uid != 0 || gid != 0 || len(groups) > 0 {
		if err := syscall.Setgroups(groups); err != nil {
			return fmt.Errorf("take the groups %v: %w", groups, err)
		}
		if err := syscall.Setgid(gid); err != nil {
			return fmt.Errorf("become the group %d: %w", gid, err)
		}
		if err := syscall.Setuid(uid); err != nil {
			return fmt.Errorf("become the user %d: %w", uid, err)
		}
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	if err := syscall.Exec(program, args, os.Environ()); err != nil {
		return &os.PathError{Op: "run", Path: program, Err: err}
	}
	return nil
}
