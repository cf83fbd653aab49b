//go:build embedguest

package guests

import (
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/embedded"
	"trajgen/sandbox/internal/packed"
)

func init() {
	embedded.Hold(func(names ...string) (map[string][]byte, error) {
		defer forget(archive)
		return packed.Read(strings.NewReader(archive), names...)
	})
}

// forget frees the memory of a part of this program. The kernel reads it from the file again when needed.
func forget(part string) {
	page := uintptr(os.Getpagesize())
	begin := uintptr(unsafe.Pointer(unsafe.StringData(part)))
	first := (begin + page - 1) &^ (page - 1)
	if last := (begin + uintptr(len(part))) &^ (page - 1); last > first {
		offset := first - begin
		_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(part)), offset)), last-first), unix.MADV_DONTNEED)
	}
}
