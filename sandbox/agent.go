package sandbox

import (
	"fmt"
	"os"
	"runtime"

	"trajgen/sandbox/internal/embedded"
)

// Agent returns the program that serves sandboxes in a container or on another machine, for Linux on an architecture (amd64 or
// arm64). The backend starts it as
//
//	PROGRAM trajgen-helper agent ...
//
// A binary that scripts/build makes holds a small program for each architecture; any other binary returns itself.
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
