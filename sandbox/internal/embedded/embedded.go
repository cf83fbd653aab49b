// Package embedded holds the commands sandboxd and sandboxhelper, in programs that package guests puts them into. Without them,
// this program runs itself again instead.
package embedded

import "runtime"

// Programs are the programs of sandboxes on this machine: executables for Linux on its architecture.
type Programs struct {
	Sandboxd []byte // the broker and the guests
	Helper   []byte // the program inside sandboxes
}

// Names of programs in the archive, which scripts/build-guest packs in this order.
const (
	sandboxd = "sandboxd"
	helper   = "sandboxhelper-" // and an architecture
)

// unpack is what Hold was given.
var unpack = func(...string) (map[string][]byte, error) { return nil, nil }

// Hold sets what returns the named programs of those that scripts/build-guest packed. It must be called before all else, by an
// init. It is given so that the programs themselves, which hold none, bring no decompressor.
func Hold(read func(names ...string) (map[string][]byte, error)) { unpack = read }

// Unpack returns the programs, or nil where there are none. It takes some 30 ms: callers should keep the result.
func Unpack() (*Programs, error) {
	programs, err := unpack(sandboxd, helper+runtime.GOARCH)
	if programs == nil || err != nil {
		return nil, err
	}
	return &Programs{Sandboxd: programs[sandboxd], Helper: programs[helper+runtime.GOARCH]}, nil
}

// Helper returns the program inside sandboxes, an executable for Linux on an architecture (amd64 or arm64); nil where there is
// none. Each call unpacks it again.
func Helper(goarch string) ([]byte, error) {
	if goarch != "amd64" && goarch != "arm64" {
		return nil, nil
	}
	programs, err := unpack(helper + goarch)
	return programs[helper+goarch], err
}
