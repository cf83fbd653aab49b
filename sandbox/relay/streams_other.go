//go:build !linux

package relay

import (
	"os"

	"golang.org/x/sys/unix"
)

func replace(fd int, with *os.File) error { return unix.Dup2(int(with.Fd()), fd) }
