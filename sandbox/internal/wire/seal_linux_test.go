package wire

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSealBusyFile seals a file that the kernel calls busy for a while, here because it is mapped.
func TestSealBusyFile(t *testing.T) {
	fd, err := memoryFile([]byte("content"), unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	mapped, err := unix.Mmap(fd, 0, 7, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = unix.Munmap(mapped) })
	if err := seal(fd); err != nil {
		t.Error(err)
	}
	if _, err := unix.Pwrite(fd, []byte("x"), 0); err != unix.EPERM {
		t.Errorf("write to a sealed file: %v, want %v", err, unix.EPERM)
	}
}
