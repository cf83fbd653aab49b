// Package embedded holds the commands sandboxd and sandboxhelper, in what was built with the tag embedguest after
// scripts/build-guest. In all else there are none, and the whole program runs itself again instead.
package embedded

import "runtime"

// Programs are what sandboxes of this machine run, executable files for Linux on its architecture.
type Programs struct {
	Sandboxd []byte // the broker and the guests
	Helper   []byte // what lies in the sandboxes
}

// Names of programs in the archive, which scripts/build-guest packs in this order.
const (
	sandboxd = "sandboxd"
	helper   = "sandboxhelper-" // and an architecture
)

// Unpack returns the programs, nil where there are none. It takes some 30 ms: whoever needs them again keeps them.
func Unpack() (*Programs, error) {
	programs, err := unpack(sandboxd, helper+runtime.GOARCH)
	if programs == nil || err != nil {
		return nil, err
	}
	return &Programs{Sandboxd: programs[sandboxd], Helper: programs[helper+runtime.GOARCH]}, nil
}

// Helper is the program that lies in sandboxes, an executable file for Linux on an architecture (amd64 or arm64); nil
// where there is none. It, too, is unpacked for each who asks.
func Helper(goarch string) ([]byte, error) {
	if goarch != "amd64" && goarch != "arm64" {
		return nil, nil
	}
	programs, err := unpack(helper + goarch)
	return programs[helper+goarch], err
}
