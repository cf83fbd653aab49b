package wire

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Program makes an executable memory file that cannot be changed.
func Program(name string, program []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3, all memory files are executable
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("make a memory file for %s: %w", name, err)
	}
	file := os.NewFile(uintptr(fd), name)
	_, err = file.Write(program)
	if err == nil {
		err = file.Chmod(0o555)
	}
	if err == nil {
		err = seal(int(file.Fd()))
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("put %s into a sealed memory file: %w", name, err)
	}
	return file, nil
}
