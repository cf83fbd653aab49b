// Package probe measures the isolation inside a sandbox that another program has made: a backend's guarantees are what is found
// there.
package probe

import (
	"context"
	"encoding/json"
	"fmt"

	"trajgen/sandbox"
)

// helper is the probe's name as a sandbox helper.
const helper = "probe"

// Facts are what a command in a sandbox finds. A limit that it does not find is 0.
type Facts struct {
	PID         int
	Processes   int    // that the command sees
	IDs         string // host, shifted or single
	Filtered    bool   // system calls are filtered
	NoNewPrivs  bool
	Memory      int64
	PIDs        int64
	CPUs        float64
	Disk        int64 // bytes of the root file system
	Inodes      int64
	Files       int64    // open files of a process
	Interfaces  []string // of the network, without loopback
	Unreachable bool     // only loopback is reachable
	Kernel      string   // its release
	FixedFolder bool     // Folder is there and cannot be written
}

// Folder is the folder that backends give a sandbox that they probe.
var Folder = sandbox.NewFolder("folder", sandbox.FileWrite{Path: "file"})

// Look runs the probe in a sandbox.
func Look(ctx context.Context, sb sandbox.Sandbox) (Facts, error) {
	var facts Facts
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Helper: helper}, sandbox.RunOptions{})
	if err != nil {
		return facts, fmt.Errorf("look around in a sandbox: %w", err)
	}
	if result.Exit.Code != 0 {
		return facts, fmt.Errorf("look around in a sandbox: exit code %d, %q", result.Exit.Code, result.Stderr.Bytes())
	}
	if err := json.Unmarshal(result.Stdout.Bytes(), &facts); err != nil {
		return facts, fmt.Errorf("look around in a sandbox: %w", err)
	}
	return facts, nil
}
