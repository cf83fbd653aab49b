package sandbox

import (
	"fmt"
	"os"
	"runtime"

	"trajgen/sandbox/internal/embedded"
)

// Agent returns the program that serves sandboxes in a container or on another machine, for Linux on an architecture
// (amd64 or arm64). It is started as
//
//	PROGRAM trajgen-helper agent ...
//
// In what scripts/build makes it is a small one, for either architecture; else it is this very program.
func Agent(goarch string) ([]byte, error) {
	if program, err := embedded.Helper(goarch); program != nil || err != nil {
		return program, err
	}
	if runtime.GOOS != "linux" || goarch != runtime.GOARCH {
		return nil, fmt.Errorf("this program holds no agent for linux/%s (one that scripts/build makes holds those for amd64 and arm64)", goarch)
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("read this program, to be the agent: %w", err)
	}
	return program, nil
}
